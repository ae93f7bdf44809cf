// One prompt to OpenAI's SDK, by chat completions or by Responses. The model may
// call upper, which runs here. Each event of the streams is printed as it comes,
// and the answer at the end.
//
//   node openai.mjs chat|responses PROMPT     (OPENAI_BASE_URL, OPENAI_API_KEY)
import OpenAI from 'openai'

const [api, prompt] = process.argv.slice(2)
const client = new OpenAI()
const upper = ({ text }) => text.toUpperCase()
const schema = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'], additionalProperties: false }

async function chat() {
  const run = client.chat.completions.runTools({
    model: 'sim',
    stream: true,
    messages: [{ role: 'user', content: prompt }],
    tools: [{ type: 'function', function: { name: 'upper', description: 'Upper case', parameters: schema, parse: JSON.parse, function: upper } }],
  })
  for await (const event of run) console.log(JSON.stringify(event))
  console.log(await run.finalContent())
}

async function responses() {
  const tools = [{ type: 'function', name: 'upper', description: 'Upper case', parameters: schema, strict: true }]
  const input = [{ role: 'user', content: prompt }]
  for (let called = true; called; ) {
    called = false
    for await (const event of await client.responses.create({ model: 'sim', stream: true, input, tools })) {
      console.log(JSON.stringify(event))
      if (event.type !== 'response.completed') continue
      for (const item of event.response.output) {
        if (item.type === 'message') console.log(item.content.map((part) => part.text).join(''))
        if (item.type !== 'function_call') continue
        called = true
        input.push(item, { type: 'function_call_output', call_id: item.call_id, output: upper(JSON.parse(item.arguments)) })
      }
    }
  }
}

await { chat, responses }[api]()
