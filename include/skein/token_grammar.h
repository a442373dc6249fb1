#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "skein/request.h"

namespace skein {

// The state of one answer that must be a text of a grammar. It depends on the grammar and on the
// answer's tokens alone; all that it stores only saves time. One thread at a time may use it.
class GrammarState {
 public:
  virtual ~GrammarState() = default;

  // Finds the tokens that may follow `output`. `output` begins with the output of the last call.
  // Token id may follow if bit id % 32 of mask[id / 32] is set; at least one bit is set. Returns
  // false if all tokens may follow; `mask` is then undefined. mask [(vocab + 31) / 32].
  virtual bool FindNext(std::span<const TokenId> output, std::span<uint32_t> mask) = 0;
};

// A grammar compiled for the tokens of a model. Its texts end with an end token of the model.
// Immutable; every member may run on any thread.
class TokenGrammar {
 public:
  virtual ~TokenGrammar() = default;
  // Makes the state of an empty answer. The state shares ownership of the parts of the grammar that
  // it needs.
  virtual std::unique_ptr<GrammarState> NewState() const = 0;
};

}  // namespace skein
