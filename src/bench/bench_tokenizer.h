#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace skein {

struct TokenizerBenchOptions {
  std::string dir;         // with tokenizer.json
  int num_samples = 15;    // of each figure; the median is reported
  double sample_us = 300;  // each sample repeats its call for about so long
  int num_batch_threads = 2;
  std::string dump_texts;  // a file for the texts and their ids; empty: none
};

// The checks before a speed is reported; the failure names the text. Every line of the files
// *cases.jsonl in `dir` ({"text", "ids", perhaps "ids_special" and "decoded"}) gives those ids and
// that text. Each text of the benchmark decodes to itself, or at least to a text of the same ids.
// Streamed decoding equals decoding at once; a batch equals single calls.
Status CheckTokenizer(const Tokenizer& tokenizer, const std::string& dir);

// Times are CPU time of the calling thread, which on an idle machine is the time that passes, but
// for batches and concurrent calls, where it is the time that passes. Members: gate ("passed"),
// load_ms, encode and decode [{name, chars, bytes, tokens, us}], batch [{size, us}], concurrent
// {threads, us_per_encode}, stream_decode_us (per token); beside these first_sight (a text that a
// fresh tokenizer encodes as its first) and one_letter (a megabyte of one letter) {chars, us}.
Result<nlohmann::ordered_json> RunTokenizerBench(const TokenizerBenchOptions& options);

}  // namespace skein
