#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>

#include "base/result.h"
#include "engine/engine_loop.h"
#include "engine/handover/frame_channel.h"
#include "engine/handover/messages.h"
#include "engine/kv_port.h"

namespace skein {

class DecodeSession;

// The decode instance's side of hand-overs. It puts the blocks of prompts into the prefix cache and
// runs the requests of prefill instances, on its own thread. A connection that sends a malformed
// message is closed. The requests of a closed connection are cancelled.
class DecodeListener {
 public:
  static constexpr int32_t kMaxSessions = 16;
  static constexpr int32_t kMaxCallsPerSession = 1 << 16;
  static constexpr size_t kMaxQueuedBytes = size_t{256} << 20;  // of outputs, for each session

  // `engine` and `port` outlive the listener. REQUIRES: `engine` caches prefixes and has no states.
  DecodeListener(EngineLoop* engine, KvPort* port, Hello hello);
  // REQUIRES: `engine` has been shut down, so that no output is under way.
  ~DecodeListener();
  DecodeListener(const DecodeListener&) = delete;
  DecodeListener& operator=(const DecodeListener&) = delete;

  // Begins to listen and returns the port. Fails with kUnavailable if the address cannot be used.
  Result<uint16_t> Start(const HostPort& address);
  // Closes all connections and accepts no more. Any thread may call it.
  void Stop();

 private:
  friend class DecodeSession;

  void Accept();
  void SayAlive();

  EngineLoop* const engine_;
  KvPort* const port_;
  const Hello hello_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  boost::asio::ip::tcp::acceptor acceptor_{io_};
  boost::asio::steady_timer timer_{io_};
  std::set<std::shared_ptr<DecodeSession>> sessions_;
  bool stopped_ = false;
  std::thread thread_;
};

}  // namespace skein
