#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "base/result.h"
#include "engine/handover/wire.h"
#include "kv/prefix_hashes.h"
#include "skein/request.h"

namespace skein {

// The messages of a hand-over: a prefill instance sends a prompt's KV blocks and the request to a
// decode instance, which answers with outputs. A frame is
//
//   | magic (4 bytes) | length of the message (4) | kind (1) | fields |
//
//   prefill instance                               decode instance
//        Hello  ----------------------------------------->   both check the other's
//               <-----------------------------------------   Hello
//        BlockRun ... StartCall, CancelCall  ------------>
//               <-------------------------  CallOutput ..., CallRefusal, Alive
//
// Parsing is a pure function of the bytes. It takes at most a small multiple of their memory, and
// refuses unknown values. Engine::Submit checks the values of a request.

inline constexpr uint32_t kHandoverVersion = 1;
inline constexpr size_t kFrameHeadBytes = 8;
inline constexpr size_t kMaxFrameBytes = size_t{256} << 20;

// The facts that must be equal on both sides, so that both compute the same bits.
struct Hello {
  uint32_t version = kHandoverVersion;
  uint64_t block_bytes = 0;  // KvPort::port_bytes
  std::string model;         // identifies weights, compute type and instruction class
  bool operator==(const Hello&) const = default;
};

// Full KV blocks of a prompt, one after the other: [number of blocks][block_bytes].
struct BlockRun {
  PrefixScope scope;
  int32_t first_block = 0;
  std::vector<TokenId> tokens;      // from the prompt's first token to the end of the run's last
                                    // block
  std::span<const std::byte> data;  // points into the frame
};

// Starts a request from its beginning: its first tokens are drawn again.
struct StartCall {
  uint64_t call = 0;  // the call's name on this connection
  Request request;    // it generates, without a grammar, choices and prompt log-probabilities
};

struct CancelCall {
  uint64_t call = 0;
  int32_t sample = -1;  // -1: all samples
};

struct CallOutput {
  uint64_t call = 0;
  RequestOutput output;  // without prompt_logprobs, read and times
};

// The decode instance refuses the request.
struct CallRefusal {
  uint64_t call = 0;
  Status status;
};

// Tells that the decode instance is alive. It is sent several times a second.
struct Alive {};

using HandoverMessage =
    std::variant<Hello, BlockRun, StartCall, CancelCall, CallOutput, CallRefusal, Alive>;

// Makes the frame of a message. REQUIRES: the frame has at most kMaxFrameBytes.
WireBytes FrameOf(const HandoverMessage& message);

// Returns the length of the message behind this header. Fails with kInvalidArgument if these are
// not the first bytes of a frame, or if the frame is too long.
Result<size_t> ParseFrameHead(std::span<const std::byte, kFrameHeadBytes> head);

// Parses the message of a frame, without the header. `block_bytes` is that of this instance's
// Hello. BlockRun::data points into `bytes`. Fails with kInvalidArgument, naming the field.
Result<HandoverMessage> ParseMessage(std::span<const std::byte> bytes, uint64_t block_bytes);

}  // namespace skein
