;; CRC-32C over the bytes at $base, for packages/format/src/frame/crc32c.ts. Compiled with wat2wasm; the bytes stand in crc32c-wasm.ts.
;;
;; Two steps. Long inputs are first folded: with S(y) = y^209 + y^144 + y^54 + y^39 + y^14 + 1, a multiple of the Castagnoli polynomial P,
;; S(x^128) = S(x)^128 is one too, so a 16-byte word may be cleared by adding it to the words 65, 155, 170, 195 and 209 places later without
;; changing the remainder. That leaves the last 209 words, which the second step, slicing-by-8, reads with tables.
;;
;; Memory: 0..8191 eight tables of 256 u32; 8192..11535 209 words of zero (the words "before" the input); 11536.. the input, at most 131072 bytes.
(module
  (memory (export "memory") 3 3)

  (func (export "init")
    (local $i i32) (local $k i32) (local $c i32)
    (loop $bytes
      (local.set $c (local.get $i))
      (local.set $k (i32.const 8))
      (loop $bits
        (local.set $c
          (i32.xor
            (i32.shr_u (local.get $c) (i32.const 1))
            (i32.and (i32.const 0x82f63b78) (i32.sub (i32.const 0) (i32.and (local.get $c) (i32.const 1))))))
        (br_if $bits (local.tee $k (i32.sub (local.get $k) (i32.const 1)))))
      (i32.store (i32.shl (local.get $i) (i32.const 2)) (local.get $c))
      (br_if $bytes (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 256))))
    ;; table t+1 [i] = (table t [i] >> 8) ^ table 0 [table t [i] & 255]
    (local.set $i (i32.const 0))
    (loop $rest
      (local.set $c (i32.load (local.get $i)))
      (i32.store offset=1024 (local.get $i)
        (i32.xor
          (i32.shr_u (local.get $c) (i32.const 8))
          (i32.load (i32.shl (i32.and (local.get $c) (i32.const 255)) (i32.const 2)))))
      (br_if $rest (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 4))) (i32.const 7168)))))

  ;; $count 16-byte words at $to are XORed with those at $from.
  (func $add_words (param $to i32) (param $from i32) (param $count i32)
    (loop $words
      (v128.store (local.get $to) (v128.xor (v128.load (local.get $to)) (v128.load (local.get $from))))
      (local.set $to (i32.add (local.get $to) (i32.const 16)))
      (local.set $from (i32.add (local.get $from) (i32.const 16)))
      (br_if $words (local.tee $count (i32.sub (local.get $count) (i32.const 1))))))

  ;; Slicing-by-8 over [$p, $end).
  (func $slice (param $p i32) (param $end i32) (param $crc i32) (result i32)
    (local $a i32) (local $b i32)
    (block $done8
      (loop $eight
        (br_if $done8 (i32.gt_u (i32.add (local.get $p) (i32.const 8)) (local.get $end)))
        (local.set $a (i32.xor (local.get $crc) (i32.load (local.get $p))))
        (local.set $b (i32.load offset=4 (local.get $p)))
        (local.set $crc
          (i32.xor
            (i32.xor
              (i32.xor
                (i32.load offset=7168 (i32.shl (i32.and (local.get $a) (i32.const 255)) (i32.const 2)))
                (i32.load offset=6144 (i32.and (i32.shr_u (local.get $a) (i32.const 6)) (i32.const 1020))))
              (i32.xor
                (i32.load offset=5120 (i32.and (i32.shr_u (local.get $a) (i32.const 14)) (i32.const 1020)))
                (i32.load offset=4096 (i32.and (i32.shr_u (local.get $a) (i32.const 22)) (i32.const 1020)))))
            (i32.xor
              (i32.xor
                (i32.load offset=3072 (i32.shl (i32.and (local.get $b) (i32.const 255)) (i32.const 2)))
                (i32.load offset=2048 (i32.and (i32.shr_u (local.get $b) (i32.const 6)) (i32.const 1020))))
              (i32.xor
                (i32.load offset=1024 (i32.and (i32.shr_u (local.get $b) (i32.const 14)) (i32.const 1020)))
                (i32.load (i32.and (i32.shr_u (local.get $b) (i32.const 22)) (i32.const 1020)))))))
        (local.set $p (i32.add (local.get $p) (i32.const 8)))
        (br $eight)))
    (block $done
      (loop $one
        (br_if $done (i32.ge_u (local.get $p) (local.get $end)))
        (local.set $crc
          (i32.xor
            (i32.shr_u (local.get $crc) (i32.const 8))
            (i32.load (i32.shl (i32.and (i32.xor (local.get $crc) (i32.load8_u (local.get $p))) (i32.const 255)) (i32.const 2)))))
        (local.set $p (i32.add (local.get $p) (i32.const 1)))
        (br $one)))
    (local.get $crc))

  ;; The running (inverted) CRC after $bytes bytes of input.
  (func (export "update") (param $bytes i32) (param $crc i32) (result i32)
    (local $p i32) (local $last i32)
    (if (i32.lt_u (local.get $bytes) (i32.const 8192))
      (then (return (call $slice (i32.const 11536) (i32.add (i32.const 11536) (local.get $bytes)) (local.get $crc)))))
    ;; the running CRC is added to the first four bytes, after which the remainder starts from zero
    (i32.store (i32.const 11536) (i32.xor (i32.load (i32.const 11536)) (local.get $crc)))
    ;; fold all whole words but the last 209; $p and $last point 209 words before the word they stand for. Four words a step: none depends on another
    (local.set $p (i32.const 8192))
    (local.set $last (i32.sub (i32.add (i32.const 8192) (i32.and (local.get $bytes) (i32.const -16))) (i32.const 3344)))
    (block $folded4
      (loop $fold4
      (br_if $folded4 (i32.gt_u (i32.add (local.get $p) (i32.const 64)) (local.get $last)))
      (v128.store offset=3344 (local.get $p)
        (v128.xor
          (v128.xor
            (v128.xor (v128.load offset=3344 (local.get $p)) (v128.load offset=2304 (local.get $p)))
            (v128.xor (v128.load offset=864 (local.get $p)) (v128.load offset=624 (local.get $p))))
          (v128.xor (v128.load offset=224 (local.get $p)) (v128.load (local.get $p)))))
      (v128.store offset=3360 (local.get $p)
        (v128.xor
          (v128.xor
            (v128.xor (v128.load offset=3360 (local.get $p)) (v128.load offset=2320 (local.get $p)))
            (v128.xor (v128.load offset=880 (local.get $p)) (v128.load offset=640 (local.get $p))))
          (v128.xor (v128.load offset=240 (local.get $p)) (v128.load offset=16 (local.get $p)))))
      (v128.store offset=3376 (local.get $p)
        (v128.xor
          (v128.xor
            (v128.xor (v128.load offset=3376 (local.get $p)) (v128.load offset=2336 (local.get $p)))
            (v128.xor (v128.load offset=896 (local.get $p)) (v128.load offset=656 (local.get $p))))
          (v128.xor (v128.load offset=256 (local.get $p)) (v128.load offset=32 (local.get $p)))))
      (v128.store offset=3392 (local.get $p)
        (v128.xor
          (v128.xor
            (v128.xor (v128.load offset=3392 (local.get $p)) (v128.load offset=2352 (local.get $p)))
            (v128.xor (v128.load offset=912 (local.get $p)) (v128.load offset=672 (local.get $p))))
          (v128.xor (v128.load offset=272 (local.get $p)) (v128.load offset=48 (local.get $p)))))
      (local.set $p (i32.add (local.get $p) (i32.const 64)))
      (br $fold4)))
    (block $folded
      (loop $fold
      (br_if $folded (i32.ge_u (local.get $p) (local.get $last)))
      (v128.store offset=3344 (local.get $p)
        (v128.xor
          (v128.xor
            (v128.xor (v128.load offset=3344 (local.get $p)) (v128.load offset=2304 (local.get $p)))
            (v128.xor (v128.load offset=864 (local.get $p)) (v128.load offset=624 (local.get $p))))
          (v128.xor (v128.load offset=224 (local.get $p)) (v128.load (local.get $p)))))
      (local.set $p (i32.add (local.get $p) (i32.const 16)))
      (br $fold)))
    ;; the last 209 words receive what was folded out of the words before them
    (local.set $p (i32.add (local.get $last) (i32.const 3344)))
    (call $add_words (local.get $p) (i32.sub (local.get $p) (i32.const 1040)) (i32.const 65))
    (call $add_words (local.get $p) (i32.sub (local.get $p) (i32.const 2480)) (i32.const 155))
    (call $add_words (local.get $p) (i32.sub (local.get $p) (i32.const 2720)) (i32.const 170))
    (call $add_words (local.get $p) (i32.sub (local.get $p) (i32.const 3120)) (i32.const 195))
    (call $add_words (local.get $p) (i32.sub (local.get $p) (i32.const 3344)) (i32.const 209))
    (call $slice (local.get $p) (i32.add (i32.const 11536) (local.get $bytes)) (i32.const 0))))
