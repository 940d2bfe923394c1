import { TitoError } from "@tito/format";
import { describe, expect, it } from "vitest";
import { admit, bearerOf, headerMap, keyDigest, keyMatches, trajectoryKey } from "../../src/gate/gate.js";

const rules = { hosts: new Set(["127.0.0.1:4000", "localhost:4000", "[::1]:4000"]), anyAddress: false };
const JSON_TYPE = ["content-type", "application/json"];

function codeOf(method: string, target: string, headers: string[] = ["host", "127.0.0.1:4000"]): string {
  try {
    return admit({ method, target, rawHeaders: headers }, rules).kind;
  } catch (error) {
    if (TitoError.is(error)) return error.code;
    throw error;
  }
}
const post = (target: string, ...headers: string[]) =>
  codeOf("POST", target, ["Host", "localhost:4000", ...JSON_TYPE, ...headers]);

describe("the path table", () => {
  it.each([
    ["GET", "/healthz", "healthz"],
    ["HEAD", "/readyz", "readyz"],
    ["GET", "/t/a/v1/models", "models"],
    ["GET", "/t/a/v1/models/org%2Fname", "model"],
    ["HEAD", "/t/a/v1/models/org/name?x=1", "model"],
    ["POST", "/t/a/seal", "seal"],
    ["POST", "/t/a", "create"],
  ])("admits %s %s", (method, target, kind) => {
    expect(codeOf(method, target)).toBe(kind);
  });

  it("admits calls of each dialect, with a query", () => {
    expect(post("/t/Ab_9-/v1/chat/completions")).toBe("call");
    expect(post("/t/a/v1/responses")).toBe("call");
    expect(post("/t/a/v1/messages?beta=true")).toBe("call");
    expect(post("/t/a/v1/messages/count_tokens")).toBe("count_tokens");
  });

  it.each([
    "//evil.example/v1/chat/completions",
    "http://evil.example/t/a/v1/chat/completions",
    "http://127.0.0.1:4000/t/a/v1/chat/completions",
    "/t/a/../b/v1/chat/completions",
    "/t/../v1/chat/completions",
    "/t/%2e%2e/v1/chat/completions",
    "/t/a/%2e%2e/v1/chat/completions",
    "/t/a//v1/chat/completions",
    "/t/a/v1/chat/completions/",
    "/t/a/v1/chat/completions%00",
    "/t/a/v1/chat/completions#x",
    "@evil.example/t/a/v1/chat/completions",
    "/t/@evil/v1/chat/completions",
    "/t//v1/chat/completions",
    `/t/${"a".repeat(65)}/v1/chat/completions`,
    "/t/а/v1/chat/completions",
    "/t/a\0/v1/chat/completions",
    "/t/a/v1/embeddings",
    "/t/a/v1/models/",
    "/t/../v1/models/x",
    "/v1/chat/completions",
    "*",
    "",
  ])("refuses %j", (target) => {
    expect(post(target)).toBe("not_found");
  });

  it.each([
    ["GET", "/t/a/v1/chat/completions"],
    ["DELETE", "/t/a"],
    ["POST", "/healthz"],
    ["CONNECT", "/t/a/v1/models"],
    ["OPTIONS", "/t/a/v1/chat/completions"],
  ])("refuses %s %s", (method, target) => {
    expect(codeOf(method, target)).toBe("method_not_allowed");
  });
});

describe("DNS rebinding and web pages", () => {
  it.each([
    [["Host", "evil.example"]],
    [["Host", "evil.example:4000"]],
    [["Host", "127.0.0.1:4001"]],
    [["Host", "127.0.0.1"]],
    [["Host", "127.0.0.1:4000.evil.example"]],
    [["Host", "127.0.0.1:4000", "host", "evil.example"]],
    [["Host", ""]],
    [[]],
  ])("refuses the headers %j", (headers) => {
    expect(codeOf("GET", "/healthz", headers)).toBe("forbidden_host");
  });

  it("refuses any Origin, also our own", () => {
    expect(codeOf("GET", "/healthz", ["Host", "localhost:4000", "Origin", "http://localhost:4000"])).toBe(
      "forbidden_host",
    );
    expect(codeOf("GET", "/healthz", ["Host", "localhost:4000", "origin", "null"])).toBe("forbidden_host");
  });

  it("reads Host without case, and address literals beyond loopback when told so", () => {
    expect(codeOf("GET", "/healthz", ["HOST", "LOCALHOST:4000"])).toBe("healthz");
    const open = { hosts: new Set<string>(), anyAddress: true };
    expect(admit({ method: "GET", target: "/healthz", rawHeaders: ["host", "10.0.0.7:4000"] }, open).kind).toBe(
      "healthz",
    );
    expect(() => admit({ method: "GET", target: "/healthz", rawHeaders: ["host", "sidecar:4000"] }, open)).toThrow(
      /Host/,
    );
  });
});

describe("bodies", () => {
  it("are JSON, plain or in an encoding that can be read", () => {
    const call = "/t/a/v1/chat/completions";
    expect(codeOf("POST", call, ["host", "127.0.0.1:4000"])).toBe("unsupported_media_type");
    expect(codeOf("POST", call, ["host", "127.0.0.1:4000", "content-type", "text/plain"])).toBe(
      "unsupported_media_type",
    );
    for (const encoding of ["identity", "gzip", "X-GZIP", "deflate , br", "", "identity,gzip"])
      expect(post(call, "content-encoding", encoding)).toBe("call");
    for (const encoding of ["compress", "gzip, rot13", "gzip;q=1", "gzip,gzip,gzip,gzip,gzip"])
      expect(post(call, "content-encoding", encoding)).toBe("unsupported_media_type");
    expect(codeOf("POST", call, ["host", "127.0.0.1:4000", "content-type", "application/json; charset=utf-8"])).toBe(
      "call",
    );
  });

  it("do not come with an upgrade", () => {
    expect(post("/t/a/v1/chat/completions", "upgrade", "websocket")).toBe("bad_request");
  });
});

describe("keys", () => {
  it("come as a bearer or as x-api-key, and two different ones are none", () => {
    expect(bearerOf(headerMap(["Authorization", "Bearer k"]))).toBe("k");
    expect(bearerOf(headerMap(["x-api-key", "k"]))).toBe("k");
    expect(bearerOf(headerMap(["x-api-key", "k", "authorization", "bearer k"]))).toBe("k");
    expect(bearerOf(headerMap(["x-api-key", "k", "authorization", "Bearer other"]))).toBeNull();
    expect(bearerOf(headerMap(["authorization", "Basic k"]))).toBeNull();
    expect(bearerOf(headerMap(["authorization", "Bearer "]))).toBeNull();
    expect(bearerOf(headerMap([]))).toBeNull();
  });

  it("match whole and only whole", () => {
    const digest = keyDigest("tito_secret");
    expect(keyMatches("tito_secret", digest)).toBe(true);
    for (const wrong of ["", "tito_secre", "tito_secret ", "TITO_SECRET", null])
      expect(keyMatches(wrong, digest)).toBe(false);
    expect(keyMatches(null, keyDigest(""))).toBe(false);
  });

  it("of a gateway differ from trajectory to trajectory", () => {
    expect(trajectoryKey("admin", "a")).not.toBe(trajectoryKey("admin", "b"));
    expect(trajectoryKey("admin", "a")).not.toBe(trajectoryKey("other", "a"));
  });
});
