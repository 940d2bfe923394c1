import type { z } from "zod";
import { badRequest, invalidBody } from "../errors.js";

/** A request body: its text, and its top-level fields. */
export interface JsonBody {
  text: string;
  value: unknown;
  fields: ReadonlyMap<string, unknown>;
}

/** Parses a body that has to be a JSON object. Throws 400. */
export function readJsonBody(text: string): JsonBody {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw badRequest(`JSON decode error: ${error instanceof Error ? error.message : error}`);
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw badRequest("the request body must be a JSON object");
  }
  return { text, value, fields: new Map(Object.entries(value)) };
}

/** Checks a body against a schema. Unknown fields are ignored, as in vLLM. Throws 400 that names the field. */
export function parseWith<S extends z.ZodType>(schema: S, body: JsonBody): z.infer<S> {
  const parsed = schema.safeParse(body.value);
  if (!parsed.success) throw invalidBody(parsed.error);
  return parsed.data;
}
