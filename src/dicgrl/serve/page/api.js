// What the server is asked. Every failure is an Error that says what is wrong in words.

export class Problem extends Error {
  constructor(status, title, detail, field) {
    super(detail);
    Object.assign(this, { status, title, field });
  }
}

async function sent(address, options) {
  let answer;
  try {
    answer = await fetch(address, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(0, "The server does not answer", "It may have been stopped, or the network is down.");
  }
  if (answer.ok) return answer;
  let told = {};
  try {
    told = await answer.json();
  } catch {
    // Not ours: a proxy, perhaps.
  }
  throw new Problem(answer.status, told.title || "That did not work", told.detail || `The server said ${answer.status}.`, told.field);
}

const query = (values) => {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values || {})) if (value !== undefined && value !== null) found.set(name, value);
  const text = found.toString();
  return text ? `?${text}` : "";
};

export async function get(address, values, signal) {
  return (await sent(address + query(values), { signal, headers: { accept: "application/json" } })).json();
}

export async function getBytes(address, signal) {
  return (await sent(address, { signal })).arrayBuffer();
}

export async function send(method, address, body, token, signal) {
  const headers = { "content-type": "application/json", accept: "application/json" };
  if (token) headers.authorization = `Bearer ${token}`;
  const answer = await sent(address, { method, headers, body: JSON.stringify(body), signal });
  const text = await answer.text();
  return text ? JSON.parse(text) : {};
}

/** The best answers to one question. */
export async function predict(question, k, fresh, signal) {
  const body = { questions: [question], k, held_out: true };
  if (fresh) body.new = true;
  const told = await send("POST", "predict", body, "", signal);
  return { version: told.version, answers: told.answers[0] };
}
