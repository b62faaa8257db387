"""An agent without packages: behaves as its task's data has it."""

import json
import os
import sys
import threading
import time
from http.client import HTTPConnection
from urllib.parse import urlsplit


def call(path, body, settings=None):
    base, key = (settings or {}).get("base_url") or os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
    address = urlsplit(base)
    connection = HTTPConnection(address.hostname, address.port, timeout=60)
    connection.request("POST", f"{address.path}/{path}", json.dumps(body), {"Authorization": f"Bearer {key}"})
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def chat(messages, **fields):
    status, answer = call("chat/completions", {"model": "any", "messages": messages, **fields})
    return answer["choices"][0]["message"] if status == 200 else sys.exit(f"status {status}: {answer}")


def user(text):
    return {"role": "user", "content": text}


def two_turns(task):
    messages = [user(f"count {task['id']}")]
    for word in ("more", "again"):
        messages += [chat(messages), user(word)]
    return 1.0


def calls_a_tool(_):
    chat([user("one")], tools=[{"type": "function", "function": {"name": "add"}}])
    return 1.0


def asks_for_json(_):
    chat([user("one")], response_format={"type": "json_object"})
    return 1.0


def stops(_):
    chat([user("one")], stop="bc")
    return 1.0


def alone(task):
    """Fails while another one runs."""
    file = task["data"]["file"]
    os.close(os.open(file, os.O_CREAT | os.O_EXCL))
    chat([user("one")])
    time.sleep(0.05)
    os.unlink(file)
    return 1.0


def edits(_):
    messages = [user("one"), chat([user("one")])]
    messages[1]["content"] = "rewritten"
    chat([*messages, user("two")])
    return {"success": True}


def parallel(_):
    first = chat([user("plan")])
    threads = [
        threading.Thread(target=chat, args=([user("plan"), first, user(f"part {number}")],)) for number in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0.5


def helper(_):
    messages = [user("plan")]
    messages.append(chat(messages))
    chat([{"role": "system", "content": "You help."}, user("small part")])
    chat([*messages, user("done?")])
    return True


def samples(_):
    call("chat/completions", {"model": "any", "messages": [user("draw")], "n": 3})
    return 1


def crash(_):
    chat([user("one")])
    raise RuntimeError("broken agent")


def hang(_):
    chat([user("one")])
    if os.fork() == 0:
        time.sleep(1000)
    time.sleep(1000)


def daemon(task):
    """Leaves a daemon: a fork with a session of its own, whose parent is gone, and another one by a command."""
    chat([user("one")])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            note_pid(task)
            time.sleep(1000)
        os._exit(0)
    os.wait()
    while not os.path.exists(task["data"]["file"]):
        time.sleep(0.01)
    return 0.5


def note_pid(task):
    file = task["data"]["file"]
    with open(f"{file}.part", "w") as part:
        part.write(str(os.getpid()))
    os.rename(f"{file}.part", file)


def kills_its_keeper(task):
    """Leaves a daemon, and kills the process that would end it."""
    keeper = os.getppid()
    daemon(task)
    os.kill(keeper, 9)
    time.sleep(1000)


def two_returns(_):
    """Returns in a forked child too; the reward is the child's exit status."""
    chat([user("one")])
    child = os.fork()
    return float(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) if child else 0.25


def memory(_):
    chat([user("one")])
    return len(bytearray(2**33))


def nothing(_):
    return 1.0


def garbage(_):
    chat([user("one")])
    return "no reward"


def forever(_):
    messages = [user("go")]
    while True:
        messages += [chat(messages), user("more")]


def agent(task, _):
    return globals()[task["data"]["does"]](task)


if __name__ == "__main__":
    task = json.loads(os.environ["BOUGH_TASK"])
    agent(task, None) if "does" in task["data"] else chat([user("one")])
    print(task["data"]["prints"])
    sys.exit(task["data"].get("status", 0))
