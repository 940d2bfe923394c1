/**
 * @tito/materializer owns the way from evidence to samples: read, select, build, score, reward, credit, pack, write.
 * It never changes what was captured.
 */
export { assertSample, fillArrays, type SampleArrays } from "./arrays.js";
export { type BuiltTrajectory, buildSamples, type Outside, type PlannedSample, type PlannedSpan } from "./build.js";
export { addCoverage, assertCoverage, type Coverage, coverageOf } from "./coverage.js";
export { assignCredit, type Credit, type CreditMember, type CreditRule, sampleWeight } from "./credit.js";
export { FORMATS, type Format } from "./encoded-run.js";
export type { Delivery, EvidenceSegment, EvidenceTurn, TrajectoryEvidence } from "./evidence.js";
export { type Decode, type ExplainTokenOptions, explainToken, type TokenExplanation } from "./explain-token.js";
export { type ExplainTurnOptions, explainTurn, type TurnExplanation } from "./explain-turn.js";
export { type InspectedSegment, type InspectedTurn, type Inspection, inspectTrajectory } from "./inspect.js";
export { type MaterializeOptions, materialize, type Progress, type Report, type RunLine } from "./materialize.js";
export { type OutputManifest, outputManifestSchema } from "./output-manifest.js";
export { loadPolicy, type Policy, type PolicyFlags, policyDigest, printPolicy } from "./policy.js";
export { readEvidence, readIdentity } from "./read.js";
export { type OutputRow, type ReadPacked, type ReadRun, type ReadSample, readOutput } from "./read-output.js";
export { MASK_REASONS, type MaskReason, SPAN_KINDS, SPAN_REASONS, TERMINATIONS, type Termination } from "./reasons.js";
export { type ReportTable, renderReport, renderTokenExplanation, renderTurnExplanation } from "./report.js";
export { type RolloutRun, rolloutRunJsonSchema, rolloutRunSchema } from "./rollout-run.js";
export { selectTurns } from "./select.js";
export { type OutputVerdict, type VerifyOptions, verifyOutput } from "./verify-output.js";
