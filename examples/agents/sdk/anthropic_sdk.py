"""One prompt to Anthropic's SDK. The model may call upper, which runs here.
Each event of the streams is printed as it comes, and the answer at the end.

    python anthropic_sdk.py PROMPT     (ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY)
"""

import sys

from anthropic import Anthropic, beta_tool


@beta_tool
def upper(text: str) -> str:
    """Upper case"""
    return text.upper()


turns = Anthropic().beta.messages.tool_runner(
    model="sim",
    max_tokens=1000,
    stream=True,
    messages=[{"role": "user", "content": sys.argv[1]}],
    tools=[upper],
)
for turn in turns:
    for event in turn:
        print(event.to_json(indent=None), flush=True)
print("".join(block.text for block in turn.get_final_message().content))
