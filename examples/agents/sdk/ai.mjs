// One prompt to the AI SDK, with its OpenAI or its Anthropic provider. The model
// may call upper, which runs here. Each part of the streams is printed as it
// comes, and the answer at the end.
//
//   node ai.mjs openai|anthropic PROMPT     (OPENAI_… or ANTHROPIC_BASE_URL, with /v1, and …_API_KEY)
import { anthropic } from '@ai-sdk/anthropic'
import { openai } from '@ai-sdk/openai'
import { jsonSchema, stepCountIs, streamText, tool } from 'ai'

const [provider, prompt] = process.argv.slice(2)
const result = streamText({
  model: { openai, anthropic }[provider]('sim'),
  prompt,
  tools: {
    upper: tool({
      description: 'Upper case',
      inputSchema: jsonSchema({ type: 'object', properties: { text: { type: 'string' } }, required: ['text'] }),
      execute: ({ text }) => text.toUpperCase(),
    }),
  },
  stopWhen: stepCountIs(5),
  onError: () => {}, // it stands in the stream too
})
for await (const part of result.fullStream) {
  if (part.type === 'error') throw part.error
  const { performance, response, ...said } = part // without times
  console.log(JSON.stringify(said))
}
console.log(await result.text)
