// Where the data comes from: the console's server, or a report's own copy.

export class Problem extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

function query(asked) {
  const said = Object.entries(asked ?? {}).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  return said.length ? `?${new URLSearchParams(said)}` : "";
}

export class ServerSource {
  live = true;

  constructor(token) {
    this.headers = { Authorization: `Bearer ${token}` };
  }

  // The ticket is behind `#`, which browsers never send; it is traded for a token and taken out of the address at once.
  static async open() {
    const found = /^#ticket=([\w-]+)/.exec(location.hash);
    if (found) {
      history.replaceState(null, "", `${location.pathname}#/live`);
      const answer = await fetch("/api/login", { method: "POST", body: found[1] });
      const body = await answer.json();
      if (answer.ok) localStorage.setItem("hookline-token", body.token);
      else if (!localStorage.getItem("hookline-token")) throw new Problem(answer.status, body.problem);
    }
    return new ServerSource(localStorage.getItem("hookline-token") ?? "");
  }

  async get(name, asked, options = {}) {
    const answer = await fetch(`/api/${name}${query(asked)}`, { headers: this.headers, ...options });
    const body = await answer.json();
    if (!answer.ok) throw new Problem(answer.status, body.problem ?? answer.statusText);
    return body;
  }

  post(name, body) {
    return this.get(name, {}, { method: "POST", body });
  }

  // Server-sent events over `fetch`, which can send the token in a header; starts again by itself.
  follow(asked, onBatch, onState) {
    const controller = new AbortController();
    const run = async () => {
      let after = asked.after ?? 0;
      while (!controller.signal.aborted) {
        try {
          const answer = await fetch(`/api/live${query({ ...asked, after })}`, {
            headers: this.headers,
            signal: controller.signal,
          });
          if (!answer.ok) throw new Problem(answer.status, "not let in");
          onState("on");
          for await (const data of messages(answer.body)) {
            if (data.status) after = data.status.last_id;
            onBatch(data);
          }
        } catch (problem) {
          if (controller.signal.aborted) return;
          onState(problem.status === 401 ? "out" : "off");
          if (problem.status === 401) return;
        }
        await new Promise((done) => setTimeout(done, 1000));
      }
    };
    run();
    return () => controller.abort();
  }
}

async function* messages(stream) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let waiting = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    waiting += value;
    let end;
    while ((end = waiting.indexOf("\n\n")) >= 0) {
      const data = waiting.slice(0, end).split("\n").find((line) => line.startsWith("data: "));
      waiting = waiting.slice(end + 2);
      if (data) yield JSON.parse(data.slice(6));
    }
  }
}
