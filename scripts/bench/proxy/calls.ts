/** Sends calls and takes the time. */
import { Agent, request as open } from "node:http";
import { ADMIN_KEY } from "./programs.js";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

/** Posts a body; resolves with the answer's bytes and the milliseconds to its last byte. `onPart` sees each part as it comes. */
export function post(
  url: string,
  body: Buffer,
  onPart?: (part: Buffer) => void,
): Promise<{ ms: number; bytes: number }> {
  return new Promise((done, fail) => {
    const startedMs = performance.now();
    const headers = {
      "content-type": "application/json",
      "content-length": body.length,
      authorization: `Bearer ${ADMIN_KEY}`,
    };
    const outgoing = open(url, { method: "POST", headers, agent }, (answer) => {
      let bytes = 0;
      answer.on("data", (part: Buffer) => {
        bytes += part.length;
        onPart?.(part);
      });
      answer.on("error", fail);
      answer.on("end", () => {
        const ms = performance.now() - startedMs;
        if (answer.statusCode === undefined || answer.statusCode > 299) fail(new Error(`${url}: ${answer.statusCode}`));
        else done({ ms, bytes });
      });
    });
    outgoing.on("error", fail);
    outgoing.end(body);
  });
}

/** Where the calls of one conversation go: straight to the engine, through the bare pipe, or into a trajectory of its own. */
export interface Route {
  name: string;
  /** The URL of conversation number `n`'s calls. */
  url(n: string): string;
  /** Ends a conversation. */
  end?(n: string): Promise<unknown>;
}

export function plainRoute(name: string, origin: string): Route {
  return { name, url: () => `${origin}/v1/chat/completions` };
}

export function sidecarRoute(name: string, origin: string): Route {
  return {
    name,
    url: (n) => `${origin}/t/${n}/v1/chat/completions`,
    end: (n) => post(`${origin}/t/${n}/seal`, Buffer.alloc(0)),
  };
}

/** Value at a share of the sorted samples. */
export function quantile(samples: readonly number[], share: number): number {
  const sorted = [...samples].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
