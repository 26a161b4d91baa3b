// Questions to the server. It keeps no game: every question brings all it needs, so any of them can be asked again.

const PAGE = [...crypto.getRandomValues(new Uint8Array(8))].map((b) => b.toString(16).padStart(2, "0")).join("");
const WAITS = [400, 800, 1500, 3000, 5000];

/** What the server says is wrong with a question. */
export class Refused extends Error {}

let onTrouble = () => {};

/** Names who is told, with a line, that the server does not answer, and with null that it does again. */
export function setTrouble(listener) {
  onTrouble = listener;
}

/** Ask, again and again while the server is busy or away; aborted, it throws an AbortError. */
async function ask(path, options, signal) {
  for (let attempt = 0; ; attempt++) {
    let wait = WAITS[Math.min(attempt, WAITS.length - 1)];
    try {
      const response = await fetch(path, { ...options, signal });
      const data = await response.json();
      if (response.ok) {
        onTrouble(null);
        return data;
      }
      if (response.status !== 429 && response.status !== 503) {
        onTrouble(null);
        throw new Refused(data.error ?? `the server answered ${response.status}`);
      }
      wait = Math.max(wait, 1000 * Number(response.headers.get("retry-after") ?? 0));
      if (attempt > 0) onTrouble("The server is busy; one moment.");
    } catch (error) {
      if (error instanceof Refused || error.name === "AbortError") throw error;
      if (attempt > 0) onTrouble("The server does not answer; trying again. Your game is kept in this page.");
    }
    await pause(wait, signal);
  }
}

export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(new DOMException("no longer needed", "AbortError"));
    });
  });
}

export function get(path, signal) {
  return ask(path, { headers: { "X-Lifeline-Page": PAGE } }, signal);
}

export function post(path, query, signal) {
  const headers = { "Content-Type": "application/json", "X-Lifeline-Page": PAGE };
  return ask(path, { method: "POST", headers, body: JSON.stringify(query) }, signal);
}
