"""An agent without packages that changes its history, in four dialects: behaves as its task's data has it."""

import contextlib
import json
import os
import threading
from http.client import HTTPConnection
from urllib.parse import urlsplit

TOOL = {"name": "look", "description": "Look.", "schema": {"type": "object", "properties": {"at": {"type": "string"}}}}


class Answer:
    """An answer: its text, its calls, and the message that its dialect has for it."""

    def __init__(self, text, calls, rows, thinking):
        self.text, self.calls, self.rows, self.thinking = text, calls, rows, thinking


def system(text):
    return ("system", text)


def user(text):
    return ("user", text)


def results(answer, text):
    return [("tool", call, text) for call in answer.calls]


class Chat:
    path = "chat/completions"

    def body(self, messages, tools):
        rows = []
        for role, *rest in messages:
            if role == "assistant":
                rows += rest[0].rows
            elif role == "tool":
                rows.append({"role": "tool", "tool_call_id": rest[0], "content": rest[1]})
            else:
                rows.append({"role": role, "content": rest[0]})
        shown = [{"type": "function", "function": self.tool(each, "parameters")} for each in tools]
        return {"model": "any", "messages": rows, **({"tools": shown} if tools else {})}

    def tool(self, tool, schema):
        return {"name": tool["name"], "description": tool["description"], schema: tool["schema"]}

    def read(self, body):
        message = body["choices"][0]["message"]
        calls = [call["id"] for call in message.get("tool_calls") or ()]
        return Answer(message["content"], calls, [message], message.get("reasoning_content"))

    def without_thinking(self, answer):
        return [{name: value for name, value in row.items() if name != "reasoning_content"} for row in answer.rows]

    def with_thinking(self, answer, thinking):
        return [row | {"reasoning_content": thinking} for row in answer.rows]

    def with_text(self, answer, text):
        return [row | {"content": text} for row in answer.rows]


class Responses(Chat):
    path = "responses"

    def body(self, messages, tools):
        items, instructions = [], None
        for role, *rest in messages:
            if role == "assistant":
                items += rest[0].rows
            elif role == "tool":
                items.append({"type": "function_call_output", "call_id": rest[0], "output": rest[1]})
            elif role == "system":
                instructions = rest[0]
            else:
                items.append({"role": role, "content": rest[0]})
        shown = [{"type": "function", **self.tool(each, "parameters")} for each in tools]
        return {"model": "any", "input": items, "instructions": instructions, "tools": shown}

    def read(self, body):
        texts = [part["text"] for item in body["output"] if item["type"] == "message" for part in item["content"]]
        calls = [item["call_id"] for item in body["output"] if item["type"] == "function_call"]
        return Answer("".join(texts), calls, body["output"], None)

    def without_thinking(self, answer):
        return [row for row in answer.rows if row["type"] != "reasoning"]

    def with_thinking(self, answer, thinking):
        content = [{"type": "reasoning_text", "text": thinking}]
        return [row | {"content": content} if row["type"] == "reasoning" else row for row in answer.rows]

    def with_text(self, answer, text):
        changed = {"content": [{"type": "output_text", "text": text, "annotations": []}]}
        return [row | changed if row["type"] == "message" else row for row in answer.rows]


class ById(Responses):
    """Sends what follows the longest earlier conversation, by the id of its response."""

    def __init__(self):
        self.known = []

    def body(self, messages, tools):
        spoken = [each for each in messages if each[0] != "system"]
        fits = [each for each in self.known if spoken[: len(each[0])] == each[0]]
        before, name = max(fits, key=lambda each: len(each[0]), default=([], None))
        self.last = spoken
        told = [each for each in messages if each[0] == "system"] + spoken[len(before) :]
        return super().body(told, tools) | {"previous_response_id": name}

    def read(self, body):
        answer = super().read(body)
        self.known.append(([*self.last, ("assistant", answer)], body["id"]))
        return answer


class Messages(Chat):
    path = "messages"

    def body(self, messages, tools):
        rows, told = [], None
        for role, *rest in messages:
            if role == "assistant":
                rows.append({"role": role, "content": rest[0].rows})
            elif role == "tool":
                block = {"type": "tool_result", "tool_use_id": rest[0], "content": rest[1]}
                rows.append({"role": "user", "content": [block]})
            elif role == "system":
                told = rest[0]
            else:
                rows.append({"role": role, "content": rest[0]})
        shown = [self.tool(each, "input_schema") for each in tools]
        body = {"model": "any", "max_tokens": 200, "messages": rows, "tools": shown}
        return body | ({"system": told} if told else {})

    def read(self, body):
        texts = [block["text"] for block in body["content"] if block["type"] == "text"]
        calls = [block["id"] for block in body["content"] if block["type"] == "tool_use"]
        return Answer("".join(texts), calls, body["content"], None)

    def without_thinking(self, answer):
        return [row for row in answer.rows if row["type"] != "thinking"]

    def with_thinking(self, answer, thinking):
        return [row | {"thinking": thinking} if row["type"] == "thinking" else row for row in answer.rows]

    def with_text(self, answer, text):
        return [row | {"text": text} if row["type"] == "text" else row for row in answer.rows]


DIALECTS = {"chat": Chat, "responses": Responses, "by_id": ById, "messages": Messages}


class Harness:
    """Asks in a dialect."""

    def __init__(self, name):
        self.dialect = DIALECTS[name]()

    def send(self, body, *, retry=0, timeout=60, path=""):
        address = urlsplit(os.environ["OPENAI_BASE_URL"])
        connection = HTTPConnection(address.hostname, address.port, timeout=timeout)
        headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "x-stainless-retry-count": str(retry)}
        headers |= {"anthropic-version": "2023-06-01"} if isinstance(self.dialect, Messages) else {}
        try:
            connection.request("POST", f"{address.path}/{path or self.dialect.path}", json.dumps(body), headers)
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def ask(self, messages, tools=(TOOL,), **settings):
        status, body = self.send(self.dialect.body(messages, tools), **settings)
        assert status == 200, body
        return self.dialect.read(body)

    def changed(self, answer, change, *args):
        """An earlier answer as the client sends it back."""
        rows = getattr(self.dialect, change)(answer, *args)
        return ("assistant", Answer(answer.text, answer.calls, rows, None))


def begun(at):
    """A conversation after a call, its result and an answer."""
    messages = [system("Help."), user("CALL it")]
    first = at.ask(messages)
    messages += [("assistant", first), *results(first, "a door")]
    second = at.ask(messages)
    return [*messages, ("assistant", second)]


def compaction(at):
    """A summary without tools takes the place of all turns."""
    summary = at.ask([*begun(at), user("Summarise.")], tools=())
    messages = [system("Help."), user(f"Done so far: {summary.text}")]
    messages += [("assistant", at.ask(messages)), user("Go on.")]
    at.ask(messages)


def window(at):
    messages = begun(at)
    messages += [user("more"), ("assistant", at.ask([*messages, user("more")]))]
    at.ask([messages[0], *messages[5:], user("and more")])


def dropped_thinking(at):
    """The thinking is left out of the history."""
    messages = begun(at)
    shown = [at.changed(each[1], "without_thinking") if each[0] == "assistant" else each for each in messages]
    at.ask([*shown, user("more")])


def changed_thinking(at):
    messages = begun(at)
    at.ask([*messages[:-1], at.changed(messages[-1][1], "with_thinking", "other"), user("more")])


def side_call(at):
    """A call without tools in between; the conversation goes on without it."""
    messages = begun(at)
    at.ask([*messages, user("Name a title.")], tools=())
    at.ask([*messages, user("more")])


def sub_agents(at):
    """Two conversations at once, whose answers the first one reads."""
    messages = [system("Plan."), user("plan")]
    plan = at.ask(messages)
    said = {}

    def work(name):
        own = [system("Work."), user(f"part {name}")]
        own += [("assistant", at.ask(own, tools=())), user("Check it.")]
        said[name] = at.ask(own, tools=()).text

    threads = [threading.Thread(target=work, args=(name,)) for name in ("one", "two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    at.ask([*messages, ("assistant", plan), user(f"{said['one']} and {said['two']}")])


def edited_result(at):
    messages = begun(at)
    messages[3] = (*messages[3][:2], "(cut)")
    at.ask([*messages, user("more")])


def edited_answer(at):
    messages = begun(at)
    at.ask([*messages[:-1], at.changed(messages[-1][1], "with_text", "as I said"), user("more")])


def other_system(at):
    at.ask([system("Be brief."), *begun(at)[1:], user("more")])


def step_back(at):
    """The last answer is taken back, and another question asked in its place."""
    messages = begun(at)
    messages += [user("one way"), ("assistant", at.ask([*messages, user("one way")]))]
    at.ask([*messages[:5], user("another way")])


def retried(at):
    """The client has not got the first answer."""
    messages = begun(at)
    at.ask([*messages, user("more")])
    again = at.ask([*messages, user("more")], retry=1)
    at.ask([*messages, user("more"), ("assistant", again), user("and more")])


def retried_last(at):
    messages = [*begun(at), user("more")]
    at.ask(messages)
    at.ask(messages, retry=1)


def sent_twice(at):
    """By a client that does not number its retries."""
    messages = begun(at)
    at.ask([*messages, user("more")])
    again = at.ask([*messages, user("more")])
    at.ask([*messages, user("more"), ("assistant", again), user("and more")])


def timeout(at):
    """The client leaves before the answer, and sends the request again."""
    messages = begun(at)
    with contextlib.suppress(TimeoutError):
        at.ask([*messages, user("SLOW once")], timeout=0.2)
    again = at.ask([*messages, user("SLOW once")], retry=1)
    at.ask([*messages, user("SLOW once"), ("assistant", again), user("and more")])


def votes(at):
    """Several answers to one prompt, of which none goes on."""
    messages = begun(at)
    for _ in range(3):
        at.ask([*messages, user("vote")])


def same_sub_agent(at):
    """Two sub-agents with one prompt after each other: the answer of the first, which goes on no more, is read."""
    messages = [system("Plan."), user("plan")]
    messages.append(("assistant", at.ask(messages)))
    own = [system("Work."), user("Do the part.")]
    messages.append(user(f"first: {at.ask(own, tools=()).text}"))
    messages.append(("assistant", at.ask(messages)))
    answer = at.ask(own, tools=())
    last = at.ask([*own, ("assistant", answer), user("Check it.")], tools=())
    at.ask([*messages, user(f"second: {last.text}")])


def cut_short(at):
    """An answer ends before a stop string, within its tokens."""
    messages = [user("one")]
    body = at.dialect.body(messages, ()) | {"stop": "-", "stop_sequences": ["-"]}
    body.pop("stop" if isinstance(at.dialect, Messages) else "stop_sequences")
    status, found = at.send(body)
    assert status == 200, found
    at.ask([*messages, ("assistant", at.dialect.read(found)), user("two")], tools=())


def too_many_choices(at):
    """One of the choices is beyond the limit of calls, so the client gets none."""
    at.ask([user("one")])
    assert at.send(at.dialect.body([user("one")], (TOOL,)) | {"n": 3})[0] == 400


def embeds(at):
    """Asks for what the server does not have, and goes on."""
    at.ask([user("one")])
    for _ in range(2):
        assert at.send({"model": "any", "input": "one"}, path="embeddings")[0] == 404
    assert at.send({"model": "any", "messages": "one"})[0] == 400


def embeds_alone(at):
    raise SystemExit(str(at.send({"model": "any", "input": "one"}, path="embeddings")[0]))


def agent(task, _):
    globals()[task["data"]["does"]](Harness(task["data"]["dialect"]))
    return task["data"].get("reward", 1.0)
