// One prompt to Anthropic's SDK. The model may call upper, which runs here. Each
// event of the streams is printed as it comes, and the answer at the end.
//
//   node anthropic.mjs PROMPT     (ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY)
import Anthropic from '@anthropic-ai/sdk'

const upper = {
  name: 'upper',
  description: 'Upper case',
  input_schema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
  parse: (input) => input,
  run: ({ text }) => text.toUpperCase(),
}
const turns = new Anthropic().beta.messages.toolRunner({
  model: 'sim',
  max_tokens: 1000,
  stream: true,
  messages: [{ role: 'user', content: process.argv[2] }],
  tools: [upper],
})
for await (const turn of turns) {
  for await (const event of turn) console.log(JSON.stringify(event))
}
console.log((await turns).content.map((block) => block.text ?? '').join(''))
