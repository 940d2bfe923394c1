import { describe, expect, it } from "vitest";
import { judgeFileSystem, judgeInodes, judgeSpace, judgeSyncs } from "../../src/doctor/disk-figures.js";
import { judgeLayers, type LayerFacts } from "../../src/doctor/layers.js";
import { isLocalUrl, judgeProxy } from "../../src/doctor/network-checks.js";
import { judgeClock, judgeNode, judgeOpenFiles } from "../../src/doctor/process-checks.js";

const MIB = 1024 * 1024;
const disk = (more: object) => ({ type: 0xef53, freeBytes: 10_000 * MIB, inodes: 1e6, freeInodes: 1e6, ...more });

describe("figures and what they mean", () => {
  it.each([
    ["19.9.0", "failure"],
    ["20.0.0", "ok"],
    ["25.1.0", "ok"],
  ])("Node %s is %s", (version, level) => expect(judgeNode(version).level).toBe(level));

  it.each([
    [64, "failure"],
    [256, "warning"],
    [1024, "ok"],
    [Number.POSITIVE_INFINITY, "ok"],
    [null, "skipped"],
  ])("%s open files are %s", (limit, level) => expect(judgeOpenFiles(limit).level).toBe(level));

  it.each([
    [15, "failure"],
    [16, "warning"],
    [1024, "ok"],
  ])("%s MiB free are %s", (mib, level) => expect(judgeSpace(disk({ freeBytes: mib * MIB })).level).toBe(level));

  it("inodes count only where the file system has a fixed number of them", () => {
    expect(judgeInodes(disk({ freeInodes: 99 })).level).toBe("failure");
    expect(judgeInodes(disk({ freeInodes: 9_999 })).level).toBe("warning");
    expect(judgeInodes(disk({ inodes: 0, freeInodes: 0 })).level).toBe("ok");
  });

  it.each([
    [0xef53, "ok", "ext4"],
    [0x01021994, "warning", "tmpfs"],
    [0x794c7630, "warning", "overlay"],
    [0x6969, "warning", "nfs"],
    [-0x6edc97c2, "ok", "btrfs"],
    [0x1234, "ok", "type 0x1234"],
  ])("a file system of type %s is %s: %s", (type, level, message) =>
    expect(judgeFileSystem(type)).toMatchObject({ level, message }),
  );

  it("the median of the syncs decides, not the worst", () => {
    expect(judgeSyncs([1, 1, 1, 500, 1])).toMatchObject({ level: "ok", message: expect.stringContaining("500.00") });
    expect(judgeSyncs([30, 30, 1])).toMatchObject({ level: "warning", message: expect.stringContaining("30.00 ms") });
  });

  it("a clock that was never set, or is not the file system's, is a warning", () => {
    const now = Date.UTC(2026, 5, 1);
    expect(judgeClock(0, null).level).toBe("warning");
    expect(judgeClock(now, now - 3_000).level).toBe("warning");
    expect(judgeClock(now, now - 1_000).level).toBe("ok");
  });

  it.each([
    [{}, "ok"],
    [{ HTTP_PROXY: "http://p:1" }, "warning"],
    [{ http_proxy: "http://p:1", no_proxy: "localhost" }, "warning"],
    [{ http_proxy: "http://p:1", no_proxy: "localhost, 127.0.0.1" }, "ok"],
    [{ ALL_PROXY: "socks5://p:1", NO_PROXY: "*" }, "ok"],
  ])("a proxy that would get the harness's calls: %j is %s", (env, level) => expect(judgeProxy(env).level).toBe(level));
});

describe("the layers of the threat model", () => {
  const best: LayerFacts = {
    namesHold: true,
    upstreamLocal: false,
    anchorFd: true,
    hmacKey: true,
    hmacKeyExposed: false,
    agentSeparate: true,
  };
  const levels = (facts: Partial<LayerFacts>) =>
    judgeLayers({ ...best, ...facts }).map((one) => [one.check.replace("layer_", ""), one.level]);
  const all = ["accident_proof", "evident", "anchored", "keyed", "separate_user", "outside"];

  it("all hold where everything is there", () => {
    expect(levels({})).toEqual(all.map((name) => [name, "ok"]));
  });

  it.each<[Partial<LayerFacts>, string, string]>([
    [{ namesHold: false }, "accident_proof", "warning"],
    [{ namesHold: null }, "accident_proof", "skipped"],
    [{ anchorFd: false, upstreamLocal: true }, "anchored", "warning"],
    [{ anchorFd: false, upstreamLocal: null }, "anchored", "skipped"],
    [{ anchorFd: false }, "anchored", "ok"],
    [{ hmacKey: false }, "keyed", "warning"],
    [{ hmacKeyExposed: true }, "keyed", "ok"],
    [{ hmacKeyExposed: true, agentSeparate: false }, "keyed", "warning"],
    [{ agentSeparate: false }, "separate_user", "warning"],
    [{ upstreamLocal: true }, "outside", "warning"],
    [{ upstreamLocal: null }, "outside", "skipped"],
  ])("with %j the layer %s is %s", (facts, layer, level) => {
    expect(Object.fromEntries(levels(facts))[layer]).toBe(level);
  });

  it.each([
    ["http://127.0.0.1:8000", true],
    ["http://localhost", true],
    ["http://[::1]:1/v1", true],
    ["http://gpu-7:8000", false],
    ["http://127.example.com", false],
  ])("%s is this machine: %s", (url, local) => expect(isLocalUrl(url)).toBe(local));
});
