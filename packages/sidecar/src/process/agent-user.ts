/** The user that COMMAND runs under: the one layer that keeps an agent away from the recorder's files and memory. */
import { readFileSync } from "node:fs";
import { TitoError } from "@tito/format";

export interface AgentUser {
  name: string;
  uid: number;
  gid: number;
  home: string;
}

/**
 * Looks a user up by name or number.
 * @throws TitoError `usage` when there is none, or when we may not become another user.
 */
export function findAgentUser(name: string, passwd: string = "/etc/passwd"): AgentUser {
  if (process.getuid?.() !== 0) {
    throw new TitoError("usage", `--agent-user ${name}: only root can start COMMAND under another user`);
  }
  const entries = readFileSync(passwd, "utf8")
    .split("\n")
    .map((line) => line.split(":"))
    .filter((fields) => fields.length >= 6);
  const found = entries.find((fields) => fields[0] === name || fields[2] === name);
  if (found === undefined) throw new TitoError("usage", `--agent-user ${name}: no such user`);
  const [user, , uid, gid, , home] = found;
  return { name: user!, uid: Number(uid), gid: Number(gid), home: home! };
}

/**
 * Does `work`, which must be synchronous, with the rights of `user`: what it makes is theirs, and a link that they planted leads it no further
 * than they may go themselves. Null, or no root: with our own. @throws TitoError `usage` when this process may not become another user.
 */
export function asUser<T>(user: AgentUser | null, work: () => T): T {
  if (user === null || process.geteuid?.() !== 0) return work();
  const own = { gid: process.getegid!(), groups: process.getgroups!() };
  try {
    process.setgroups!([user.gid]);
    process.setegid!(user.gid);
    process.seteuid!(user.uid);
  } catch (cause) {
    process.seteuid!(0);
    process.setegid!(own.gid);
    throw new TitoError("usage", `--agent-user ${user.name}: this process may not become another user`, {
      cause,
      hint: "it needs the capabilities CAP_SETUID and CAP_SETGID",
    });
  }
  try {
    return work();
  } finally {
    process.seteuid!(0);
    process.setegid!(own.gid);
    process.setgroups!(own.groups);
  }
}
