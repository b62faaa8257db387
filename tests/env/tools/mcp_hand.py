"""A server of MCP by hand, which starts sooner than one of the SDK: `python mcp_hand.py NAME`.

The argument `result` of its tool `say` is the result. The server `counter` has some of the tools of `mcp_server.py`.
"""

import json
import os
import sys
import time

SAY = {"name": "say", "description": "says", "inputSchema": {"type": "object"}}
EVIL = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}

NUMBER = {"type": "object", "properties": {"amount": {"type": "integer"}}, "required": ["amount"]}
COUNTER = [{"name": name, "inputSchema": {"type": "object"}} for name in ("hang", "die", "process")]
total = [int(os.environ.get("BEGIN", "0"))]


def count(tool: str, arguments: dict[str, int]) -> dict[str, object]:
    """The result of a tool of the counter."""
    if tool == "hang":
        time.sleep(100)
    if tool == "die":
        os._exit(3)
    text = f"{os.getpid()} {sys.argv[2:]}"
    if tool == "add":
        total.append(arguments["amount"])
        text = str(sum(total))
    return {"content": [{"type": "text", "text": text}]}


def tools(name: str, listed: int) -> list[object]:
    if name == "counter":
        return [{"name": "add", "inputSchema": NUMBER}, *COUNTER]
    if name == "empty":
        return []
    if name == "endless":
        return [{**SAY, "description": "x" * 10_000_000}]
    if name == "many":
        return [{**SAY, "name": f"say{number}"} for number in range(1025)]
    if name == "marked":
        return [{**SAY, "name": "<tool_call>"}]
    if name == "changing":
        return [SAY, {**SAY, "name": f"tool{listed}"}]
    if name == "evil":
        return [{**SAY, "outputSchema": EVIL}]
    if name == "looping":
        return [{**SAY, "inputSchema": {"type": "object", "$ref": "#"}}]
    return [SAY]


def child() -> str:
    """The process of a child that leaves the session, and sleeps on."""
    if (pid := os.fork()) == 0:
        os.setsid()
        for number in range(3):
            os.close(number)
        time.sleep(600)
        os._exit(0)
    return str(pid)


def write(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(name: str) -> None:
    listed = 0
    for line in sys.stdin:
        request = json.loads(line)
        if not {"id", "method"} <= {*request}:
            continue
        method, result = request["method"], {}
        if method == "initialize":
            version = request["params"]["protocolVersion"]
            result = {"protocolVersion": version, "serverInfo": {"name": "hand", "version": "1"}}
            result["capabilities"] = {"tools": {"listChanged": True}}
        elif method == "tools/list":
            listed += 1
            result = {"tools": tools(name, listed)}
        elif method == "tools/call":
            given = request["params"]["arguments"]
            result = count(request["params"]["name"], given) if name == "counter" else given.get("result", {})
            for noise in given.get("noise", ()):
                write(noise)
            sys.stdout.write("x" * given.get("characters", 0))
            if given.get("child"):
                result = {"content": [{"type": "text", "text": child()}]}
            if given.get("bytes"):
                sys.stdout.buffer.write(b"\xff\xfe noise \xe4\n")
            if given.get("changes"):
                write(json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}))
        write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}))


main(sys.argv[1])
