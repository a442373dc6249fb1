#include <malloc.h>
#include <signal.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/blocked_signals.h"
#include "apps/commands.h"
#include "apps/host/help.h"
#include "apps/host/model_host.h"
#include "apps/model/model_cache.h"
#include "apps/read_file.h"
#include "apps/serve/kv_event_publisher.h"
#include "base/byte_size.h"
#include "base/memory_limit.h"
#include "server/http/http_server.h"
#include "server/json/json.h"

namespace skein {
namespace {

constexpr double kShutdownTimeoutMaxS = 1e6;
constexpr int kOwnPagesBytes = 1 << 20;
constexpr double kMaxWaitS = 15;  // many clients give up after 30 s
constexpr std::chrono::milliseconds kMemoryPoll(1000);
constexpr size_t kBodiesShare = 8;  // at most an eighth of a limited memory is for bodies
constexpr std::chrono::seconds kAbortAnswerTime(2);  // for clients that read their answer slowly

struct ServeOptions {
  ModelHostOptions model;
  std::string role;  // empty: the process computes prompts and decodes
  ServerConfig server;
  std::string api_key;
  std::string api_keys_file;
  std::vector<std::string> slo_defaults;
  std::vector<std::string> objectives;  // NAME=PRIORITY
  std::string kv_events;                // JSON
  std::vector<std::string> served_model_names;
  std::string chat_template_kwargs;  // JSON
  bool any_model_name = true;
  UserSpecialTokens user_special_tokens = UserSpecialTokens::kDefault;
  std::string memory_limit;
  std::string log_level = "info";
  double shutdown_timeout_s = 30;
};

// Parses the chat template's variables, before the model is loaded.
Result<Json> ReadTemplateKwargs(const ServeOptions& options) {
  if (options.chat_template_kwargs.empty()) return Json::object();
  auto kwargs = ParseJson(options.chat_template_kwargs);
  if (!kwargs.has_value() || !kwargs->is_object()) {
    return Status(StatusCode::kInvalidArgument,
                  "--default-chat-template-kwargs must be a JSON object, got " +
                      options.chat_template_kwargs);
  }
  return *std::move(kwargs);
}

Result<ServerConfig> MakeServerConfig(const ServeOptions& options) {
  ServerConfig server = options.server;
  SKEIN_ASSIGN_OR_RETURN(server.route_defaults, ParseRouteDefaults(options.slo_defaults));
  if (!options.api_keys_file.empty()) {
    SKEIN_ASSIGN_OR_RETURN(const std::string json, ReadFile(options.api_keys_file));
    SKEIN_ASSIGN_OR_RETURN(server.api_keys, ParseApiKeys(json));
  }
  for (const std::string& text : options.objectives) {
    const size_t equals = text.find('=');
    int32_t priority = 0;
    const char* const end = text.data() + text.size();
    const bool is_pair = equals != std::string::npos && equals > 0;
    const auto read = std::from_chars(text.data() + (is_pair ? equals + 1 : 0), end, priority);
    if (!is_pair || read.ec != std::errc() || read.ptr != end) {
      return Status(StatusCode::kInvalidArgument,
                    "--objectives must be NAME=PRIORITY, the priority an integer, got " + text);
    }
    server.objectives[text.substr(0, equals)] = priority;
  }
  if (!options.api_key.empty()) server.api_keys.push_back({.key = options.api_key});
  return server;
}

Result<ModelRegistry> MakeRegistry(const ServeOptions& options, Json kwargs,
                                   const ModelHost& host) {
  ModelEntry entry = host.entry();
  if (!options.served_model_names.empty()) entry.names = options.served_model_names;
  entry.user_special_tokens = options.user_special_tokens;
  entry.created_s = static_cast<int64_t>(std::time(nullptr));
  entry.chat_template_kwargs = std::move(kwargs);
  ModelRegistry registry;
  registry.set_accepts_any_name(options.any_model_name);
  registry.Add(entry);
  for (ModelEntry adapter : host.adapters()) {
    if (registry.Find(adapter.name()) != nullptr) {
      return Status(StatusCode::kInvalidArgument, "an adapter is named '" + adapter.name() +
                                                      "', which --served-model-name has, too");
    }
    adapter.parent = entry.name();
    adapter.created_s = entry.created_s;
    adapter.user_special_tokens = entry.user_special_tokens;
    adapter.chat_template_kwargs = entry.chat_template_kwargs;
    registry.Add(std::move(adapter));
  }
  return registry;
}

// Lets running requests finish within `timeout_s`. A second signal ends the wait.
void Drain(HttpServer* server, const BlockedSignals& signals, double timeout_s) {
  server->BeginDrain();
  spdlog::info("draining {} requests", server->num_active_requests());
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::microseconds(int64_t(timeout_s * 1e6));
  while (!server->Drained() && std::chrono::steady_clock::now() < deadline) {
    if (signals.WaitFor(std::chrono::milliseconds(20))) break;
  }
  if (!server->Drained()) spdlog::warn("ending {} requests", server->num_active_requests());
  server->Abort();
  // Errors must be sent to the clients before the connections are closed.
  const auto answered = std::chrono::steady_clock::now() + kAbortAnswerTime;
  while (!server->Drained() && std::chrono::steady_clock::now() < answered) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string UrlOf(const ServerConfig& server, uint16_t port) {
  const char* scheme = server.ssl_certfile.empty() ? "http://" : "https://";
  return scheme + server.host + ":" + std::to_string(port);
}

// Checks that a role comes with its address, and an address with its role.
Status CheckRole(const ServeOptions& options) {
  const HandoverOptions& handover = options.model.handover;
  const struct {
    const char *role, *option;
    const std::string& address;
  } roles[] = {{"prefill", "--decode-peer", handover.decode_peer},
               {"decode", "--handover-listen", handover.listen}};
  for (const auto& [role, option, address] : roles) {
    if ((options.role == role) == !address.empty()) continue;
    return {StatusCode::kInvalidArgument,
            options.role == role ? std::string("--role ") + role + " needs " + option + " HOST:PORT"
                                 : std::string(option) + " needs --role " + role};
  }
  return Status::Ok();
}

// Writes a line to standard output, for people and for programs that wait for it.
void Announce(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

// Makes the publisher of KV events; null if they are not asked for.
Result<std::unique_ptr<KvEventPublisher>> MakePublisher(const ServeOptions& options) {
  std::unique_ptr<KvEventPublisher> publisher;
  if (options.kv_events.empty()) return publisher;
  SKEIN_ASSIGN_OR_RETURN(std::optional<KvEventConfig> config,
                         ParseKvEventConfig(options.kv_events));
  if (!config) return publisher;
  for (const std::string& adapter : options.model.adapters) {
    config->adapters.push_back(adapter.substr(0, adapter.find('=')));
  }
  SKEIN_ASSIGN_OR_RETURN(publisher, KvEventPublisher::Open(*std::move(config)));
  spdlog::info("KV events at {}, replays at {}", publisher->endpoint(),
               publisher->replay_endpoint().empty() ? "none" : publisher->replay_endpoint());
  return publisher;
}

Result<int64_t> OwnMemoryLimit(const ServeOptions& options) {
  if (options.memory_limit.empty()) return int64_t{0};
  return ParseByteSize("memory-limit", options.memory_limit);
}

// Keeps bodies well below a limit of the process's memory.
void LimitBodies(int64_t memory_bytes, ServerConfig* server) {
  if (memory_bytes == 0) return;
  const auto most = static_cast<size_t>(memory_bytes) / kBodiesShare;
  server->max_buffered_body_bytes = std::min(server->max_buffered_body_bytes, most);
  server->max_body_bytes = std::min(server->max_body_bytes, most);
}

// Waits for a signal. Meanwhile, adapts the ceiling. Nothing is refused while the model loads: the
// sizes of caches and steps are chosen by what is free, and threads map stacks that they do not
// touch.
void WaitForSignal(const BlockedSignals& signals, MemoryCeiling* ceiling) {
  ceiling->Update();
  if (ceiling->limit_bytes() > 0) {
    spdlog::info("memory is limited to {}; {} are left for requests",
                 FormatByteSize(ceiling->limit_bytes()), FormatByteSize(ceiling->room_bytes()));
  }
  while (!signals.WaitFor(kMemoryPoll)) ceiling->Update();
}

Status Serve(const ServeOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const BlockedSignals signals({SIGTERM, SIGINT, SIGHUP});
  signal(SIGPIPE, SIG_IGN);
  // Long bodies get memory pages of their own, which are returned to the system when a body is
  // freed.
  mallopt(M_MMAP_THRESHOLD, kOwnPagesBytes);
  SKEIN_RETURN_IF_ERROR(CheckRole(options));
  SKEIN_ASSIGN_OR_RETURN(Json kwargs, ReadTemplateKwargs(options));
  SKEIN_ASSIGN_OR_RETURN(ServerConfig config, MakeServerConfig(options));
  SKEIN_ASSIGN_OR_RETURN(const int64_t own_limit_bytes, OwnMemoryLimit(options));
  MemoryCeiling ceiling(own_limit_bytes);
  LimitBodies(ceiling.limit_bytes(), &config);
  HttpServer server(std::move(config));
  SKEIN_ASSIGN_OR_RETURN(const uint16_t port, server.Start());
  const std::string url = UrlOf(options.server, port);
  Announce("loading " + options.model.model + " on " + url);

  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<KvEventPublisher> publisher, MakePublisher(options));
  ModelHostOptions model = options.model;
  model.observer = publisher.get();
  model.memory_limit_bytes = own_limit_bytes;
  SKEIN_ASSIGN_OR_RETURN(const std::unique_ptr<ModelHost> host,
                         LoadUnlessStopped(model, signals, /*exit_status=*/0));
  SKEIN_ASSIGN_OR_RETURN(ModelRegistry registry, MakeRegistry(options, std::move(kwargs), *host));
  // Loading leaves parsed files behind in the allocator, which would keep their pages.
  malloc_trim(0);
  const std::string name = registry.entries().front().name();
  server.SetModels(std::move(registry));
  Announce("listening on " + url);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  spdlog::info("serving {} after {:.2f} s", name, elapsed.count());

  WaitForSignal(signals, &ceiling);
  Drain(&server, signals, options.shutdown_timeout_s);
  server.Stop();
  host->Shutdown(0);
  return Status::Ok();
}

// If no model is named, chooses the default one, which must have been fetched.
Status ChooseModel(std::string* model) {
  if (!model->empty()) return Status::Ok();
  SKEIN_ASSIGN_OR_RETURN(*model, FetchedDefaultModel());
  return Status::Ok();
}

Status SetLogLevel(const std::string& level) {
  const auto parsed = spdlog::level::from_str(level);
  if (parsed == spdlog::level::off && level != "off") {
    return Status(StatusCode::kInvalidArgument,
                  "--log-level must be trace, debug, info, warning, error, critical or off, got '" +
                      level + "'");
  }
  spdlog::set_level(parsed);
  return Status::Ok();
}

// Adds the options for the server's address and for what clients get by default.
void AddServerOptions(CLI::App* app, ServeOptions* o) {
  const HelpGroup group(app, "Server");
  app->add_option("--host", o->server.host, "Address to listen on")->capture_default_str();
  app->add_option("--port", o->server.port, "Port; 0: any free one")->capture_default_str();
  app->add_option("--slo-defaults", o->slo_defaults,
                  "Defaults of a class of routes (generate, decide, rank, embed), such as "
                  "decide:ttft=250,priority=-1; a key's own go first")
      ->expected(1, 4);
  app->add_option("--objectives", o->objectives,
                  "Priorities of the objectives that a gateway names in the header "
                  "x-llm-d-inference-objective, as NAME=PRIORITY; lower runs first (docs/slo.md)")
      ->expected(1, 64);
  app->add_option("--kv-events-config", o->kv_events,
                  "JSON as vLLM takes it: {\"enable_kv_cache_events\": true, \"endpoint\": "
                  "\"tcp://*:5557\", \"topic\": \"kv@POD@MODEL\"} publishes the blocks that enter "
                  "and leave the prefix cache over ZeroMQ, tokens included (docs/clients.md)");
  app->add_option("--batch-dir", o->server.batch_dir,
                  "A directory for /v1/files and /v1/batches, which is made if it is not there; "
                  "batches go on after a restart. Not set: there are no such routes");
  app->add_option("--max-batch-bytes", o->server.max_batch_bytes,
                  "Bytes that the files there may have together; further uploads get 413")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 50))
      ->capture_default_str();
  app->add_option(
         "--served-model-name", o->served_model_names,
         "Names that requests may use for the model, also separated by commas; the first is "
         "its own")
      ->expected(1, 64)
      ->delimiter(',')
      ->check([](const std::string& name) {
        return name.empty() ? std::string("must not be empty") : std::string();
      });
  app->add_option("--lora", o->model.adapters,
                  "A LoRA adapter as NAME=DIR, DIR as PEFT writes it; requests whose model is NAME "
                  "use it. May be given several times")
      ->expected(1)
      ->take_all();
  app->add_option_function<std::string>(
         "--user-special-tokens",
         [o](const std::string& how) {
           o->user_special_tokens =
               how == "plain" ? UserSpecialTokens::kPlain : UserSpecialTokens::kParse;
         },
         "How special tokens in users' texts are read: plain (as text) or parse (as tokens); not "
         "set: plain in decisions and ranks, parse in chats and prompts")
      ->check(CLI::IsMember({"plain", "parse"}));
  app->add_flag("--any-model-name,!--no-any-model-name", o->any_model_name,
                "Answer requests for any model name while one model is served, without adapters "
                "but that for decisions. Default: on");
  app->add_option("--default-chat-template-kwargs", o->chat_template_kwargs,
                  "A JSON object of variables for the chat template");
  app->add_option("--log-level", o->log_level,
                  "trace, debug, info, warning, error, critical or off")
      ->capture_default_str();
}

// Adds the options for two processes that share the work: one computes prompts, the other one
// decodes.
void AddHandoverOptions(CLI::App* app, ServeOptions* o) {
  const HelpGroup group(app, "Prefill and decode apart");
  app->add_option("--role", o->role,
                  "prefill: clients talk to this server, which computes their prompts and has "
                  "--decode-peer go on, as long as that is there; decode: it takes prompts on "
                  "--handover-listen. Not set: both in one (docs/scheduling.md)")
      ->check(CLI::IsMember({"prefill", "decode"}));
  app->add_option("--decode-peer", o->model.handover.decode_peer,
                  "HOST:PORT of the server with --role decode, which has the same model")
      ->type_name("ADDRESS");
  app->add_option("--handover-listen", o->model.handover.listen,
                  "HOST:PORT on which prompts are taken over, without keys or encryption: an "
                  "address of this machine or of a trusted network; port 0: any free one")
      ->type_name("ADDRESS");
}

// Adds the options for the callers that may use the server.
void AddAccessOptions(CLI::App* app, ServeOptions* o) {
  const HelpGroup group(app, "Access");
  app->add_option("--api-key", o->api_key,
                  "Bearer token that requests for work must carry; empty: none");
  app->add_option("--api-keys", o->api_keys_file,
                  "A JSON file of further such keys, each with defaults of its own for "
                  "slo_ttft_ms, slo_tpot_ms and priority (docs/slo.md) and limits "
                  "(docs/security.md)");
  app->add_option("--audit-log", o->server.audit_log,
                  "A file that gets a JSON line for each request for work, without its contents "
                  "(docs/security.md)");
  app->add_option("--ssl-keyfile", o->server.ssl_keyfile, "TLS: private key, PEM");
  app->add_option("--ssl-certfile", o->server.ssl_certfile, "TLS: certificate chain, PEM");
  app->add_option("--allowed-origins", o->server.allowed_origins,
                  "Origins whose web pages may use the server, also separated by commas; *: all, "
                  "an empty one: none, auto: all if there are keys, else pages of this machine")
      ->expected(1, 64)
      ->delimiter(',')
      ->capture_default_str();
  app->add_option("--allowed-hosts", o->server.allowed_hosts,
                  "Names that requests may have in Host, also separated by commas; *: all. Not "
                  "set: those of the loopback if --host is one and there are no keys, else all")
      ->expected(1, 64)
      ->delimiter(',');
}

void AddServerLimits(CLI::App* app, ServeOptions* o) {
  const HelpGroup group(app, "Threads and limits of the server");
  app->add_option("--io-threads", o->server.num_io_threads,
                  "Threads for sockets and short requests")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app->add_option("--worker-threads", o->server.num_worker_threads,
                  "Threads that parse and tokenize requests above 4 KiB")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  o->model.max_wait_s = kMaxWaitS;
  app->add_option("--max-wait", o->model.max_wait_s,
                  "Seconds of estimated waiting beyond which new requests get 429, or less for one "
                  "that takes long; one that is not begun in time to be answered within twice that "
                  "is ended. Steps with prompts and "
                  "decodes then take about 0.1 s. 0: no bound. Half of a request's timeout_ms, or "
                  "of its client's own timeout, goes first")
      ->check(CLI::Range(0.0, 86400.0))
      ->capture_default_str();
  app->add_flag("--refuse-late", o->model.refuses_late,
                "Answer a request with 429 if it would probably miss its slo_ttft_ms, or has not "
                "been begun in time for it; without this it is served late");
  app->add_option("--max-connections", o->server.max_connections,
                  "Connections at once; a further one takes the place of the one that is idle "
                  "longest, or may ask for /health and /metrics alone")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app->add_option("--max-connections-per-address", o->server.max_connections_per_address,
                  "Connections from one address; further ones are closed. 0: any number")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  app->add_option("--max-body-bytes", o->server.max_body_bytes, "Larger requests get 413")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  app->add_option("--max-buffered-body-bytes", o->server.max_buffered_body_bytes,
                  "Bytes that all bodies above 64 KiB may hold together; further ones get 503")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  app->add_option("--memory-limit", o->memory_limit,
                  "Memory that the process may take, such as 4GiB: what would exceed it is refused "
                  "(503), and an eighth of it is for bodies; default: what its control groups "
                  "allow. Pages of the model's files do not count")
      ->type_name("SIZE");
  app->add_option("--max-stream-queue-bytes", o->server.max_stream_queue_bytes,
                  "Unsent bytes at which a slow reader's stream is ended")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 40))
      ->capture_default_str();
  app->add_option("--shutdown-timeout", o->shutdown_timeout_s,
                  "Seconds that running requests may take after SIGTERM")
      ->check([](const std::string& text) {
        const double seconds = std::strtod(text.c_str(), nullptr);
        return seconds >= 0 && seconds <= kShutdownTimeoutMaxS
                   ? std::string()
                   : text + " is not a number of seconds in [0, 1000000]";
      })
      ->capture_default_str();
}

}  // namespace

void AddServeCommand(CLI::App* app, int* exit_status) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = app->add_subcommand("serve", "Serve a model over HTTP");
  AddModelHostOptions(command, &options->model);
  command->get_option("MODEL")->required(false);
  AddServerOptions(command, options.get());
  AddAccessOptions(command, options.get());
  AddHandoverOptions(command, options.get());
  AddServerLimits(command, options.get());
  NameEnvironment(command);
  ShowFirst(command,
            {"--host", "--port", "--api-key", "--lora", "--quantization", "--threads",
             "--kv-cache-memory", "--max-model-len", "--max-queued-requests", "--scheduling"});
  command->callback([options, exit_status] {
    Status status = SetLogLevel(options->log_level);
    if (status.ok()) status = ChooseModel(&options->model.model);
    if (status.ok()) status = Serve(*options);
    if (status.ok()) return;
    std::fprintf(stderr, "skein serve: %s\n", status.message().c_str());
    *exit_status = 1;
  });
}

}  // namespace skein
