#include "apps/serve/kv_event_publisher.h"

#include <spdlog/spdlog.h>
#include <zmq.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <new>
#include <span>
#include <string_view>
#include <utility>

#include "base/memory_reserve.h"
#include "server/json/field_reader.h"
#include "server/json/json.h"

namespace skein {
namespace {

// The wait for further events. The events of one step follow each other closely, and so become one
// message.
constexpr std::chrono::milliseconds kGather(1);
constexpr std::chrono::milliseconds kReplayPoll(50);
constexpr char kMedium[] = "CPU";
constexpr int64_t kCountMax = 1 << 24;

Status Wrong(const std::string& message) {
  return {StatusCode::kInvalidArgument, "--kv-events-config: " + message, "kv-events-config"};
}

// The bytes of `value` in big-endian order.
std::array<char, 8> BytesOf(uint64_t value) {
  std::array<char, 8> bytes;
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (56 - 8 * i));
  return bytes;
}

uint64_t BigEndianOf(std::string_view bytes) {
  uint64_t value = 0;
  for (const char byte : bytes) value = value << 8 | static_cast<unsigned char>(byte);
  return value;
}

// Whether the publisher binds the endpoint, to which others connect.
bool IsBound(const std::string& endpoint) {
  return endpoint.find('*') != std::string::npos || endpoint.find("::") != std::string::npos ||
         endpoint.starts_with("ipc://") || endpoint.starts_with("inproc://");
}

double UnixTime() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

}  // namespace

struct KvEventPublisher::Context {
  Context() : handle(zmq_ctx_new()) {}
  ~Context() { zmq_ctx_term(handle); }
  void* const handle;
};

struct KvEventPublisher::Socket {
  Socket(const Context& context, int type) : handle(zmq_socket(context.handle, type)) {
    const int linger_ms = 0;
    zmq_setsockopt(handle, ZMQ_LINGER, &linger_ms, sizeof(linger_ms));
  }
  ~Socket() { zmq_close(handle); }

  Status Open(const std::string& endpoint, bool bind, std::string* opened) {
    const int failed =
        bind ? zmq_bind(handle, endpoint.c_str()) : zmq_connect(handle, endpoint.c_str());
    if (failed != 0) {
      return Wrong("cannot use the endpoint " + endpoint + ": " + zmq_strerror(zmq_errno()));
    }
    char last[256] = "";
    size_t size = sizeof(last);
    if (zmq_getsockopt(handle, ZMQ_LAST_ENDPOINT, last, &size) == 0) *opened = last;
    return Status::Ok();
  }

  // Drops the message if it cannot be sent now.
  void Send(std::initializer_list<std::string_view> parts) {
    for (const std::string_view& part : parts) {
      const bool more = &part != parts.end() - 1;
      zmq_send(handle, part.data(), part.size(), ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0));
    }
  }

  // Returns the parts of a waiting message; empty if no message waits.
  std::vector<std::string> Receive() {
    std::vector<std::string> parts;
    int more = 1;
    while (more != 0) {
      zmq_msg_t message;
      zmq_msg_init(&message);
      if (zmq_msg_recv(&message, handle, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close(&message);
        return {};
      }
      parts.emplace_back(static_cast<const char*>(zmq_msg_data(&message)), zmq_msg_size(&message));
      more = zmq_msg_more(&message);
      zmq_msg_close(&message);
    }
    return parts;
  }

  void* const handle;
};

Result<std::optional<KvEventConfig>> ParseKvEventConfig(const std::string& json) {
  std::string why;
  const std::optional<Json> parsed = ParseJson(json, &why);
  if (!parsed || !parsed->is_object()) return Wrong("must be a JSON object, got " + json);
  FieldReader reader(*parsed);
  KvEventConfig config;
  const std::string publisher = reader.String("publisher").value_or("zmq");
  config.endpoint = reader.String("endpoint").value_or(config.endpoint);
  config.replay_endpoint = reader.String("replay_endpoint").value_or("");
  config.topic = reader.String("topic").value_or("");
  const auto count = [&](const char* name, int32_t* value) {
    *value = static_cast<int32_t>(reader.Int(name, 1, kCountMax).value_or(*value));
  };
  count("buffer_steps", &config.buffer_steps);
  count("hwm", &config.hwm);
  count("max_queue_size", &config.max_queue_size);
  const bool enabled = reader.Bool("enable_kv_cache_events").value_or(false);
  if (!reader.status().ok()) return Wrong(reader.status().message());
  if (publisher != "zmq" && publisher != "null") {
    return Wrong("publisher must be zmq or null, got " + publisher);
  }
  if (!enabled || publisher == "null") return std::optional<KvEventConfig>();
  return std::optional(std::move(config));
}

KvEventPublisher::KvEventPublisher(KvEventConfig config)
    : config_(std::move(config)), context_(std::make_unique<Context>()) {}

Result<std::unique_ptr<KvEventPublisher>> KvEventPublisher::Open(KvEventConfig config) {
  std::unique_ptr<KvEventPublisher> publisher(new KvEventPublisher(std::move(config)));
  SKEIN_RETURN_IF_ERROR(publisher->OpenSockets());
  publisher->thread_ = std::thread([own = publisher.get()] { own->Run(); });
  return publisher;
}

KvEventPublisher::~KvEventPublisher() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Status KvEventPublisher::OpenSockets() {
  socket_ = std::make_unique<Socket>(*context_, ZMQ_PUB);
  zmq_setsockopt(socket_->handle, ZMQ_SNDHWM, &config_.hwm, sizeof(config_.hwm));
  SKEIN_RETURN_IF_ERROR(socket_->Open(config_.endpoint, IsBound(config_.endpoint), &endpoint_));
  if (config_.replay_endpoint.empty()) return Status::Ok();
  replay_ = std::make_unique<Socket>(*context_, ZMQ_ROUTER);
  return replay_->Open(config_.replay_endpoint, /*bind=*/true, &replay_endpoint_);
}

// A second scheduler begins with an empty cache.
void KvEventPublisher::OnStart(const SchedulerConfig& /*config*/) {
  const std::lock_guard lock(mutex_);
  if (!std::exchange(started_, true)) return;
  pending_.clear();
  lost_ = true;
  changed_.notify_one();
}

void KvEventPublisher::OnStored(const PrefixKey& key, std::optional<uint64_t> parent_hash) {
  if (key.scope.cache_salt != 0) return;
  Push({.parent = parent_hash,
        .hashes = {key.hash},
        .tokens = {key.tokens.begin(), key.tokens.end()},
        .adapter_id = key.scope.adapter_id});
}

void KvEventPublisher::OnRemoved(uint64_t hash) { Push({.hashes = {hash}}); }

void KvEventPublisher::Push(Event event) {
  {
    const std::lock_guard lock(mutex_);
    if (Continues(event)) {
      Event& last = pending_.back();
      last.hashes.push_back(event.hashes.front());
      last.tokens.insert(last.tokens.end(), event.tokens.begin(), event.tokens.end());
    } else if (std::ssize(pending_) < config_.max_queue_size) {
      pending_.push_back(std::move(event));
    } else {
      pending_.clear();
      lost_ = true;
    }
  }
  changed_.notify_one();
}

bool KvEventPublisher::Continues(const Event& event) {
  if (pending_.empty()) return false;
  const Event& last = pending_.back();
  if (event.tokens.empty()) return last.tokens.empty();
  return !last.tokens.empty() && event.parent == last.hashes.back() &&
         event.adapter_id == last.adapter_id;
}

void KvEventPublisher::Run() {
  const ReserveScope no_failed_allocation;
  while (true) {
    std::vector<Event> events;
    bool lost = false;
    {
      std::unique_lock lock(mutex_);
      const auto any = [this] { return stop_ || lost_ || !pending_.empty(); };
      if (replay_ != nullptr) {
        changed_.wait_for(lock, kReplayPoll, any);
      } else {
        changed_.wait(lock, any);
      }
      if (!stop_ && !pending_.empty()) {
        lock.unlock();
        std::this_thread::sleep_for(kGather);
        lock.lock();
      }
      events.swap(pending_);
      std::swap(lost, lost_);
      if (stop_ && events.empty() && !lost) return;
    }
    try {
      if (lost || !events.empty()) Publish(events, lost);
      if (replay_ != nullptr) AnswerReplays();
    } catch (const std::bad_alloc&) {
      const std::lock_guard lock(mutex_);
      lost_ = true;
    }
  }
}

void KvEventPublisher::Publish(const std::vector<Event>& events, bool lost) {
  Json list = Json::array();
  if (lost) {
    spdlog::warn("KV events were lost: more than {} waited, or there was no memory",
                 config_.max_queue_size);
    list.push_back(Json::array({"AllBlocksCleared"}));
  }
  for (const Event& event : events) {
    if (event.tokens.empty()) {
      list.push_back(Json::array({"BlockRemoved", event.hashes, kMedium}));
      continue;
    }
    Json name, id;
    if (event.adapter_id > 0) {
      id = event.adapter_id;
      if (event.adapter_id <= std::ssize(config_.adapters)) {
        name = config_.adapters[event.adapter_id - 1];
      }
    }
    list.push_back(
        Json::array({"BlockStored", event.hashes, event.parent ? Json(*event.parent) : Json(),
                     event.tokens, kBlockTokens, id, kMedium, name}));
  }
  const std::vector<uint8_t> packed =
      Json::to_msgpack(Json::array({UnixTime(), std::move(list), 0}));
  std::string payload(packed.begin(), packed.end());
  const auto sequence = BytesOf(sequence_);
  socket_->Send({config_.topic, {sequence.data(), sequence.size()}, payload});
  if (replay_ != nullptr) {
    messages_.emplace_back(sequence_, std::move(payload));
    if (std::ssize(messages_) > config_.buffer_steps) messages_.pop_front();
  }
  ++sequence_;
}

// A replay request is [client, empty, first wanted sequence number]. Each stored message is sent as
// [client, empty, sequence number, payload]. The number -1 without a payload marks the end.
void KvEventPublisher::AnswerReplays() {
  for (auto request = replay_->Receive(); !request.empty(); request = replay_->Receive()) {
    if (request.size() != 3 || request[2].size() != sizeof(uint64_t)) continue;
    const uint64_t first = BigEndianOf(request[2]);
    for (const auto& [sequence, payload] : messages_) {
      if (sequence < first) continue;
      const auto bytes = BytesOf(sequence);
      replay_->Send({request[0], {}, {bytes.data(), bytes.size()}, payload});
    }
    const auto end = BytesOf(~uint64_t{0});
    replay_->Send({request[0], {}, {end.data(), end.size()}, {}});
  }
}

}  // namespace skein
