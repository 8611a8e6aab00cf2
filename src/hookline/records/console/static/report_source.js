// A report's own copy of the data: the same questions as the server's, answered from what lies in the page.
export class ReportSource {
  live = false;

  constructor(data) {
    this.data = data;
    this.note = data.note;
    this.events = data.events;
    this.details = new Map(data.details.map((one) => [one.row.id, one]));
  }

  async get(name, asked = {}) {
    const answer = this[`_${name}`]?.(asked);
    if (answer === undefined || answer === null) throw Object.assign(new Error("this report does not hold it"), { status: 404 });
    return answer;
  }

  post(name) {
    return this.get(name, {});
  }

  _status() {
    return { ready: true, last_id: 0, events: this.data.total };
  }

  _events(asked) {
    const start = Number(asked.cursor || 0);
    const limit = Number(asked.limit ?? 100);
    const rows = this.events.filter((row) => this.matches(row, asked));
    return { rows: rows.slice(start, start + limit), next: start + limit < rows.length ? String(start + limit) : "" };
  }

  matches(row, asked) {
    const text = (asked.text ?? "").toLowerCase();
    return (
      (!asked.verdict || asked.verdict.split(",").includes(row.verdict)) &&
      ["event", "tool", "session"].every((name) => !asked[name] || row[name] === asked[name]) &&
      (!asked.hook || this.hooksOf(row).includes(asked.hook)) &&
      (!asked.failed || row.failed) &&
      (!asked.unseen || !row.hooks) &&
      (!asked.since || row.time >= Number(asked.since)) &&
      (!asked.until || row.time < Number(asked.until)) &&
      (!text || `${row.about ?? ""} ${row.reason ?? ""}`.toLowerCase().includes(text))
    );
  }

  hooksOf(row) {
    const runs = this.details.get(row.id)?.record.hooks;
    return Array.isArray(runs) ? runs.map((run) => run?.hook) : [];
  }

  _facets(asked) {
    const unfiltered = Object.keys(asked).every((name) => !asked[name]);
    if (unfiltered) return this.data.facets;
    const rows = this.events.filter((row) => this.matches(row, asked));
    const counts = (names) => {
      const sums = {};
      for (const row of rows) for (const name of names(row)) if (name) sums[name] = (sums[name] ?? 0) + 1;
      return Object.fromEntries(Object.entries(sums).sort((a, b) => b[1] - a[1]));
    };
    return { total: rows.length, verdict: counts((row) => [row.verdict]), event: counts((row) => [row.event]), tool: counts((row) => [row.tool]), hook: counts((row) => this.hooksOf(row)), failed: rows.filter((row) => row.failed).length };
  }

  _timeline(asked) {
    if (Object.keys(asked).every((name) => !asked[name])) return this.data.timeline;
    const { width } = this.data.timeline;
    const buckets = new Map();
    for (const row of this.events.filter((one) => this.matches(one, asked))) {
      const start = Math.floor(row.time / width) * width;
      if (!buckets.has(start)) buckets.set(start, {});
      buckets.get(start)[row.verdict] = (buckets.get(start)[row.verdict] ?? 0) + 1;
    }
    return { width, buckets: [...buckets].sort((a, b) => a[0] - b[0]) };
  }

  _event(asked) {
    return this.details.get(Number(asked.id));
  }

  _sessions(asked) {
    const text = (asked.text ?? "").toLowerCase();
    const rows = this.data.sessions.filter((one) => !text || `${one.name} ${one.title} ${one.cwd} ${one.user}`.toLowerCase().includes(text));
    return { rows, next: "" };
  }

  _session(asked) {
    const session = this.data.sessions.find((one) => one.name === asked.name);
    if (!session) return null;
    const rows = this.events.filter((row) => row.session === asked.name).sort((a, b) => a.time - b.time || a.id - b.id);
    return { session, rows, next: rows.length < session.events ? "more" : "" };
  }

  _hooks() {
    return this.data.hooks;
  }

  _hook(asked) {
    return this.data.series.find((one) => one.name === asked.name);
  }

  _coverage() {
    return this.data.coverage;
  }

  _health() {
    return this.data.health;
  }

  _replay() {
    return this.data.replay;
  }
}
