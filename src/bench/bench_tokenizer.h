#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace skein {

struct TokenizerBenchOptions {
  std::string dir;         // holds tokenizer.json
  int num_samples = 15;    // samples of each figure; their median is reported
  double sample_us = 300;  // each sample repeats its call for about this long
  int num_batch_threads = 2;
  std::string dump_texts;  // file for the texts and their ids; empty: none
};

// The checks before speeds are reported. An error names the text. Every line of the files
// *cases.jsonl in `dir` ({"text", "ids"}, optionally with "ids_special" and "decoded") must give
// these ids and this text. Each text of the benchmark must decode to itself, or at least to a text
// with the same ids. Streamed decoding must equal decoding at once, and a batch must equal single
// calls.
Status CheckTokenizer(const Tokenizer& tokenizer, const std::string& dir);

// Measures a tokenizer. Times are CPU time of the calling thread; on an idle machine this equals
// wall time. Times of batches and of concurrent calls are wall time. Members: gate ("passed"),
// load_ms, encode and decode [{name, chars, bytes, tokens, us}], batch [{size, us}], concurrent
// {threads, us_per_encode}, stream_decode_us (per token). The members first_sight (the first text
// that a new tokenizer encodes) and one_letter (a megabyte of one letter) are {chars, us}.
Result<nlohmann::ordered_json> RunTokenizerBench(const TokenizerBenchOptions& options);

}  // namespace skein
