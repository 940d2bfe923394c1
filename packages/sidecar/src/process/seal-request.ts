/** Asks a running sidecar to seal. A sidecar that is just being started again is waited for. */
import { request } from "node:http";
import { setTimeout as wait } from "node:timers/promises";

const ATTEMPTS = 40;
const DELAY_MS = 250;

export async function sealRequest(url: string, ownerKey: string): Promise<{ status: number; text: string }> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await post(url, ownerKey);
    } catch (error) {
      const code = (error as NodeJS.ErrnoException).code;
      if (attempt >= ATTEMPTS || (code !== "ECONNREFUSED" && code !== "ECONNRESET")) throw error;
      await wait(DELAY_MS);
    }
  }
}

function post(url: string, ownerKey: string): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { method: "POST", headers: { authorization: `Bearer ${ownerKey}`, "content-length": "0" } },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("error", reject);
        response.on("end", () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString("utf8") }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end();
  });
}
