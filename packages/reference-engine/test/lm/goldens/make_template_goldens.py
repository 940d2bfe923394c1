"""What transformers renders from our chat template, as the yardstick of the rendering in JavaScript.

    python make_template_goldens.py fixtures/policy/chat_template.jinja template-cases.json > template-goldens.json     (pip install transformers jinja2)
"""

import json
import sys

from transformers.utils.chat_template_utils import render_jinja_template


def main() -> None:
    template = open(sys.argv[1], encoding="utf-8").read()
    rendered = []
    for case in json.load(open(sys.argv[2], encoding="utf-8")):
        texts, _ = render_jinja_template(
            conversations=[case["messages"]],
            tools=case.get("tools"),
            chat_template=template,
            add_generation_prompt=case.get("add_generation_prompt", False),
        )
        rendered.append(texts[0])
    print(json.dumps(rendered, indent=1))


main()
