#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "kv/block_listener.h"
#include "sched/record/observer.h"

namespace skein {

// How the events of the prefix cache are published: the JSON of vLLM's --kv-events-config.
struct KvEventConfig {
  // Bound if it contains '*' or is ipc://, otherwise connected.
  std::string endpoint = "tcp://*:5557";
  std::string replay_endpoint;  // bound; empty: no replays
  std::string topic;
  int32_t buffer_steps = 10'000;     // messages that can be replayed
  int32_t hwm = 100'000;             // messages that wait for a slow subscriber
  int32_t max_queue_size = 100'000;  // events that wait to be published
  // [i]: the name of adapter i + 1; others are published as null.
  std::vector<std::string> adapters;
};
// Returns nullopt if the JSON does not enable the events. Errors name the member.
Result<std::optional<KvEventConfig>> ParseKvEventConfig(const std::string& json);

// Publishes the blocks that enter and leave the prefix cache over ZeroMQ, in vLLM's messages, which
// the gateways of llm-d read. A message is [topic, sequence number (8 bytes, big-endian), msgpack
// of [time, [event, ...], 0]]; an event is an array that begins with BlockStored, BlockRemoved or
// AllBlocksCleared. Blocks with a cache salt are not published, since only their owner can use
// them.
//
//   scheduler's thread --pending_--> own thread --> PUB socket; ROUTER socket for replays
//
// If more than max_queue_size events wait, they are dropped and AllBlocksCleared is published.
class KvEventPublisher final : public SchedulerObserver, private BlockListener {
 public:
  // Fails with kInvalidArgument (param "kv-events-config") if an endpoint cannot be used.
  static Result<std::unique_ptr<KvEventPublisher>> Open(KvEventConfig config);
  ~KvEventPublisher() override;

  BlockListener* block_listener() override { return this; }
  // The endpoints that were bound, with the ports that were chosen.
  const std::string& endpoint() const { return endpoint_; }
  const std::string& replay_endpoint() const { return replay_endpoint_; }

 private:
  struct Event {
    std::optional<uint64_t> parent;  // predecessor of the first stored block
    std::vector<uint64_t> hashes;
    std::vector<int32_t> tokens;  // of the stored blocks; empty: the blocks were removed
    int32_t adapter_id = 0;
  };
  struct Socket;
  struct Context;

  explicit KvEventPublisher(KvEventConfig config);

  void OnStart(const SchedulerConfig& config) override;
  void OnStored(const PrefixKey& key, std::optional<uint64_t> parent_hash) override;
  void OnRemoved(uint64_t hash) override;
  void Push(Event event);
  // Appends the block to the last event if the block continues it. REQUIRES: mutex_ is held.
  bool Continues(const Event& event);

  Status OpenSockets();
  void Run();
  void Publish(const std::vector<Event>& events, bool lost);
  void AnswerReplays();

  const KvEventConfig config_;
  std::unique_ptr<Context> context_;  // declared before the sockets, since it must outlive them
  std::unique_ptr<Socket> socket_, replay_;
  std::string endpoint_, replay_endpoint_;
  uint64_t sequence_ = 0;  // number of the next message; used by thread_
  std::deque<std::pair<uint64_t, std::string>> messages_;  // the latest messages; used by thread_

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Event> pending_;  // guarded by mutex_
  bool lost_ = false;           // guarded by mutex_
  bool started_ = false;        // guarded by mutex_
  bool stop_ = false;           // guarded by mutex_
  std::thread thread_;
};

}  // namespace skein
