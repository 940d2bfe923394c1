/** What the user that the agent runs under can do to the recorder: tried, where we may become that user. */
import { spawnSync } from "node:child_process";
import { TitoError } from "@tito/format";
import { findAgentUser } from "../process/agent-user.js";
import type { Probe } from "./directory-checks.js";
import { type Finding, finding } from "./finding.js";

export interface AgentFacts {
  finding: Finding;
  /** The agent runs under another user than the recorder, and was kept out. */
  separate: boolean;
}

/** Attempts on the probe's directory and on this process. Prints the name of each that works. */
const ATTEMPTS = `
(cat "$1/000001.seg" > /dev/null) 2> /dev/null && echo "read its files"
(echo x >> "$1/000001.seg") 2> /dev/null && echo "write its files"
(echo x > "$1/planted") 2> /dev/null && echo "add files"
(mv "$1" "$1.moved") 2> /dev/null && mv "$1.moved" "$1" && echo "move its directory"
(kill -0 "$2") 2> /dev/null && echo "signal it"
(head -c 1 "/proc/$2/mem" > /dev/null) 2> /dev/null && echo "read its memory"
(cat "/proc/$2/environ" > /dev/null) 2> /dev/null && echo "read its environment"
exit 0
`;
const ATTEMPTS_MS = 10_000;

/** `name` null: the harness shares the recorder's user. */
export function checkAgent(name: string | null, probe: Probe | null): AgentFacts {
  const own = process.getuid?.() ?? null;
  if (name === null) {
    const message = `the agent runs under the recorder's user${own === null ? "" : ` (uid ${own})`}`;
    const hint =
      own === 0 ? "--agent-user NAME keeps it out of the record" : "only root can start the agent under another user";
    return { separate: false, finding: finding("agent_user", "warning", message, hint) };
  }
  try {
    const user = findAgentUser(name);
    if (user.uid === 0 || user.uid === own) {
      const message = `${user.name} has the recorder's own uid ${user.uid}`;
      return {
        separate: false,
        finding: finding("agent_user", "failure", message, "choose a user without privileges"),
      };
    }
    const worked = probe === null ? null : attempt(user, probe);
    if (worked === null) {
      return {
        separate: false,
        finding: finding("agent_user", "failure", `nothing can be started under uid ${user.uid}`),
      };
    }
    if (worked.length > 0) {
      const message = `uid ${user.uid} can ${worked.join(", ")}`;
      return {
        separate: false,
        finding: finding("agent_user", "failure", message, "use another --out, or another user"),
      };
    }
    const message = `uid ${user.uid} can neither read, write nor move the record, nor reach uid ${own}'s process`;
    return { separate: true, finding: finding("agent_user", "ok", message) };
  } catch (error) {
    if (!TitoError.is(error)) throw error;
    return { separate: false, finding: finding("agent_user", "failure", error.message, error.hint ?? null) };
  }
}

/** What worked; null when the shell did not run at all. */
function attempt(user: { uid: number; gid: number }, probe: Probe): string[] | null {
  const result = spawnSync("/bin/sh", ["-c", ATTEMPTS, "sh", probe.dir, String(process.pid)], {
    uid: user.uid,
    gid: user.gid,
    cwd: "/",
    env: { PATH: "/usr/bin:/bin" },
    timeout: ATTEMPTS_MS,
    encoding: "utf8",
  });
  if (result.status !== 0) return null;
  return result.stdout.split("\n").filter((line) => line !== "");
}
