import { fileURLToPath } from "node:url";

/** The model directory that ships with the repository. */
export const POLICY_DIRECTORY = fileURLToPath(new URL("../../../../fixtures/policy/", import.meta.url));

/** A file beside the tests. */
export const golden = (name: string): string => fileURLToPath(new URL(`goldens/${name}`, import.meta.url));
