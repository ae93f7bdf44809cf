"""One prompt to OpenAI's SDK, by chat completions. The model may call upper,
which runs here. Each event of the streams is printed as it comes, and the
answer at the end.

    python openai_sdk.py PROMPT     (OPENAI_BASE_URL, OPENAI_API_KEY)
"""

import json
import sys

from openai import OpenAI

client = OpenAI()
schema = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
tools = [{"type": "function", "function": {"name": "upper", "description": "Upper case", "parameters": schema}}]
messages = [{"role": "user", "content": sys.argv[1]}]

while True:
    with client.chat.completions.stream(model="sim", messages=messages, tools=tools) as stream:
        for event in stream:
            if event.type == "chunk":
                print(event.chunk.to_json(indent=None), flush=True)
        message = stream.get_final_completion().choices[0].message
    if not message.tool_calls:
        print(message.content)
        break
    messages.append(message.to_dict())
    for call in message.tool_calls:
        text = json.loads(call.function.arguments)["text"]
        messages.append({"role": "tool", "tool_call_id": call.id, "content": text.upper()})
