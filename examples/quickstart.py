"""The shortest program there is: an agent writes into a real editor, on a desktop that is made for it.

python examples/quickstart.py
"""

import surehand

with surehand.open(desktop="isolated") as hand:
    hand.launch(["org.xfce.mousepad.desktop"])
    editor = hand.app("mousepad").get_by_role("text")
    receipt = editor.set_value("Hello from an agent", timeout_s=30)
    print(receipt)
    if not receipt.verified or editor.value != "Hello from an agent":
        raise SystemExit("FAILED: the editor does not hold the text")
    print("ok: the editor holds the text, and the receipt says so")
