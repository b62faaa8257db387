// Requests to the viewer's server.

async function answer(response) {
  const found = await response.json().catch(() => ({ error: `the viewer answered ${response.status}` }));
  if (!response.ok) throw new Error(found.error ?? `the viewer answered ${response.status}`);
  return found;
}

export const api = {
  /** Whether a server answers: it searches texts, applies other credit rules, and plays. */
  live: true,
  async get(path) {
    return answer(await fetch(path));
  },
  async post(path, body) {
    return answer(await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
  },
  /** Calls `changed(names)` when files of runs change; returns a function that ends it. */
  watch(changed) {
    const source = new EventSource("/api/events");
    const away = (is) => document.documentElement.classList.toggle("away", is);
    source.addEventListener("open", () => away(false));
    source.addEventListener("error", () => away(true));
    source.addEventListener("message", (event) => changed(JSON.parse(event.data)));
    return () => source.close();
  },
};
