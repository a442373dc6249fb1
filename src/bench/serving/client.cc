#include "bench/serving/client.h"

#include <algorithm>
#include <array>
#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <charconv>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

namespace skein {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using asio::ip::tcp;
using SteadyClock = std::chrono::steady_clock;
using TimePoint = SteadyClock::time_point;

// Makes operations complete with an error code as a value, so that nothing throws.
constexpr auto kAwait = asio::as_tuple(asio::use_awaitable);
constexpr size_t kMaxErrorBodyBytes = 64 << 10;
constexpr TimeUs kModelTimeoutUs = 30'000'000;

TimeUs ElapsedUs(TimePoint since) {
  return std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - since).count();
}

struct Connection {
  explicit Connection(asio::io_context& io) : stream(io) {}

  beast::tcp_stream stream;
  beast::flat_buffer buffer;
  std::array<char, 16384> chunk;
  bool used = false;  // it has carried a request: the server may have closed it since
};

struct Response {
  int status = 0;
  bool keep_alive = false;
  bool any_bytes = false;  // some bytes of an answer came
  std::string error;       // empty: the answer was read to its end
};

using BytesFn = std::function<void(int status, std::string_view bytes)>;

std::string DescribeError(const beast::error_code& error) {
  return error == beast::error::timeout ? "timed out" : error.message();
}

// Connects if necessary, sends the request, and passes the body's bytes to `on_bytes` as they
// arrive.
asio::awaitable<Response> Exchange(Connection& connection, const tcp::resolver::results_type& peers,
                                   const http::request<http::string_body>& request,
                                   const BytesFn& on_bytes) {
  Response response;
  if (!connection.stream.socket().is_open()) {
    const auto [error, peer] = co_await connection.stream.async_connect(peers, kAwait);
    if (error) {
      response.error = "connect: " + DescribeError(error);
      co_return response;
    }
    beast::error_code ignored;
    connection.stream.socket().set_option(tcp::no_delay(true), ignored);
  }
  {
    const auto [error, size] = co_await http::async_write(connection.stream, request, kAwait);
    if (error) {
      response.error = "send: " + DescribeError(error);
      co_return response;
    }
  }
  http::response_parser<http::buffer_body> parser;
  parser.body_limit(boost::none);
  {
    const auto [error, size] =
        co_await http::async_read_header(connection.stream, connection.buffer, parser, kAwait);
    response.any_bytes = size > 0;
    if (error) {
      response.error = "receive: " + DescribeError(error);
      co_return response;
    }
  }
  response.status = parser.get().result_int();
  // The parser is not eager: an eager read would wait for more bytes and hold back those that have
  // arrived.
  while (!parser.is_done()) {
    auto& body = parser.get().body();
    body.data = connection.chunk.data();
    body.size = connection.chunk.size();
    const auto [error, size] =
        co_await http::async_read_some(connection.stream, connection.buffer, parser, kAwait);
    const size_t received = connection.chunk.size() - parser.get().body().size;
    if (received > 0) on_bytes(response.status, {connection.chunk.data(), received});
    if (error && error != http::error::need_buffer) {
      response.error = "receive: " + DescribeError(error);
      co_return response;
    }
  }
  response.keep_alive = parser.get().keep_alive();
  co_return response;
}

void SetHeaders(const LoadOptions& options, http::request<http::string_body>* request) {
  const bool v6 = options.url.host.find(':') != std::string::npos;
  request->set(http::field::host,
               (v6 ? "[" + options.url.host + "]" : options.url.host) + ":" + options.url.port);
  request->set(http::field::user_agent, "skein-bench");
  if (!options.api_key.empty()) {
    request->set(http::field::authorization, "Bearer " + options.api_key);
  }
}

Result<tcp::resolver::results_type> Resolve(asio::io_context& io, const ServerUrl& url) {
  beast::error_code error;
  tcp::resolver resolver(io);
  auto peers = resolver.resolve(url.host, url.port, error);
  if (error) {
    return Status(StatusCode::kInvalidArgument,
                  "url: " + url.host + ":" + url.port + ": " + error.message(), "url");
  }
  return peers;
}

// Runs one load: a timer releases requests, and each request runs as a coroutine.
class LoadRun {
 public:
  LoadRun(const std::vector<WorkloadRequest>& requests, const LoadOptions& options)
      : requests_(requests), options_(options), arrival_timer_(io_), limit_timer_(io_) {
    order_.resize(requests.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    if (open_loop()) {
      std::stable_sort(order_.begin(), order_.end(), [&](size_t a, size_t b) {
        return requests_[a].arrival_us < requests_[b].arrival_us;
      });
    }
  }

  Result<LoadOutcome> Run() {
    for (const WorkloadRequest& request : requests_) {
      SKEIN_RETURN_IF_ERROR(CheckBenchRequest(request, options_.format));
    }
    SKEIN_ASSIGN_OR_RETURN(peers_, Resolve(io_, options_.url));
    start_ = SteadyClock::now();
    end_ = start_ + std::chrono::microseconds(options_.time_limit_us);
    limit_timer_.expires_at(end_);
    limit_timer_.async_wait([this](const beast::error_code& error) {
      if (!error) stopped_ = true;
      if (stopped_) arrival_timer_.cancel();
    });
    if (open_loop()) {
      ReleaseDue();
    } else {
      FillPlaces();
    }
    io_.run();
    outcome_.num_not_sent =
        static_cast<int64_t>(requests_.size()) - static_cast<int64_t>(outcome_.records.size());
    return std::move(outcome_);
  }

 private:
  struct Due {
    size_t request;
    TimePoint since;
  };

  bool open_loop() const { return options_.concurrency == 0; }

  TimePoint ArrivalOf(size_t request) const {
    return start_ + std::chrono::microseconds(static_cast<TimeUs>(
                        static_cast<double>(requests_[request].arrival_us) / options_.speed));
  }

  // In an open loop: queues the requests that are due by now, and sets the timer for the next one.
  void ReleaseDue() {
    const TimePoint now = SteadyClock::now();
    while (!stopped_ && next_ < order_.size() && ArrivalOf(order_[next_]) <= now) {
      due_.push_back({order_[next_], ArrivalOf(order_[next_])});
      ++next_;
    }
    FillPlaces();
    if (stopped_ || next_ == order_.size()) return;
    arrival_timer_.expires_at(ArrivalOf(order_[next_]));
    arrival_timer_.async_wait([this](const beast::error_code& error) {
      if (!error) ReleaseDue();
    });
  }

  void FillPlaces() {
    const int32_t limit = open_loop() ? options_.max_connections : options_.concurrency;
    while (!stopped_ && num_active_ < limit) {
      if (!due_.empty()) {
        StartSession(due_.front());
        due_.pop_front();
      } else if (!open_loop() && next_ < order_.size()) {
        StartSession({order_[next_++], SteadyClock::now()});
      } else {
        break;
      }
    }
    if (num_active_ == 0 && due_.empty() && next_ == order_.size()) limit_timer_.cancel();
  }

  void StartSession(const Due& due) {
    std::string body = MakeBenchRequestBody(requests_[due.request],
                                            static_cast<int64_t>(due.request), options_.format);
    outcome_.records.emplace_back();
    outcome_.records.back().request_class = requests_[due.request].request_class;
    outcome_.records.back().slo_ttft_us = requests_[due.request].slo_ttft_us;
    outcome_.records.back().slo_tpot_us = requests_[due.request].slo_tpot_us;
    ++num_active_;
    // In a closed loop, a request's time starts when it can be sent.
    const TimePoint since = open_loop() ? due.since : SteadyClock::now();
    asio::co_spawn(io_, Session(outcome_.records.size() - 1, since, std::move(body)),
                   asio::detached);
  }

  asio::awaitable<void> Session(size_t record_index, TimePoint since, std::string body) {
    const bool chat = options_.format.endpoint == BenchEndpoint::kChat;
    http::request<http::string_body> request{
        http::verb::post, options_.url.path + (chat ? "/v1/chat/completions" : "/v1/completions"),
        11};
    SetHeaders(options_, &request);
    request.set(http::field::content_type, "application/json");
    request.set(http::field::accept, "text/event-stream");
    request.body() = std::move(body);
    request.prepare_payload();

    BenchAnswerReader reader;
    std::string error_body;
    const BytesFn on_bytes = [&](int status, std::string_view bytes) {
      if (status == 200) {
        reader.Feed(bytes, ElapsedUs(since));
      } else if (error_body.size() < kMaxErrorBodyBytes) {
        error_body += bytes;
      }
    };
    const TimePoint deadline =
        std::min(end_, since + std::chrono::microseconds(options_.request_timeout_us));
    Response response;
    bool retry = true;
    while (retry) {
      std::unique_ptr<Connection> connection = TakeConnection();
      connection->stream.expires_at(deadline);
      response = co_await Exchange(*connection, peers_, request, on_bytes);
      // The server had closed a kept connection before this request, which is no failure of the
      // server.
      retry = connection->used && !response.error.empty() && !response.any_bytes &&
              SteadyClock::now() < deadline;
      if (response.error.empty() && response.keep_alive) {
        connection->used = true;
        connection->stream.expires_never();
        idle_.push_back(std::move(connection));
      }
    }
    LoadRecord& record = outcome_.records[record_index];
    if (!response.error.empty()) {
      record.error = response.error;
    } else if (response.status != 200) {
      record.error = DescribeHttpError(response.status, error_body);
    } else {
      reader.Finish(&record);
    }
    outcome_.duration_us = ElapsedUs(start_);
    --num_active_;
    FillPlaces();
  }

  std::unique_ptr<Connection> TakeConnection() {
    if (idle_.empty()) return std::make_unique<Connection>(io_);
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    return connection;
  }

  const std::vector<WorkloadRequest>& requests_;
  const LoadOptions& options_;
  asio::io_context io_{1};
  asio::steady_timer arrival_timer_;
  asio::steady_timer limit_timer_;
  tcp::resolver::results_type peers_;
  std::vector<std::unique_ptr<Connection>> idle_;
  std::vector<size_t> order_;  // indices of the requests
  size_t next_ = 0;            // index in order_ of the first request that is not due
  std::deque<Due> due_;        // due requests that wait for a connection
  int32_t num_active_ = 0;
  bool stopped_ = false;
  TimePoint start_, end_;
  LoadOutcome outcome_;
};

}  // namespace

Result<ServerUrl> ParseServerUrl(std::string_view url) {
  const Status error(StatusCode::kInvalidArgument,
                     "url: '" + std::string(url) + "' is not http://HOST[:PORT][/PATH]", "url");
  constexpr std::string_view kScheme = "http://";
  if (!url.starts_with(kScheme)) return error;
  url.remove_prefix(kScheme.size());
  const size_t slash = url.find('/');
  std::string_view authority = url.substr(0, slash);
  std::string_view path = slash == std::string_view::npos ? "" : url.substr(slash);
  ServerUrl result;
  if (authority.starts_with('[')) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return error;
    result.host = authority.substr(1, close - 1);
    authority.remove_prefix(close + 1);
  } else {
    result.host = authority.substr(0, authority.find(':'));
    authority.remove_prefix(result.host.size());
  }
  result.port = "80";
  if (!authority.empty()) {
    int port = 0;
    const auto [end, code] =
        std::from_chars(authority.data() + 1, authority.data() + authority.size(), port);
    if (authority[0] != ':' || code != std::errc() || end != authority.data() + authority.size() ||
        port < 1 || port > 65535) {
      return error;
    }
    result.port = std::to_string(port);
  }
  if (result.host.empty() || path.find_first_of(" ?#\r\n") != std::string_view::npos) return error;
  while (path.ends_with('/')) path.remove_suffix(1);
  if (path.ends_with("/v1")) path.remove_suffix(3);
  result.path = path;
  return result;
}

Result<std::string> FetchModelName(const LoadOptions& options) {
  asio::io_context io{1};
  SKEIN_ASSIGN_OR_RETURN(const auto peers, Resolve(io, options.url));
  http::request<http::string_body> request{http::verb::get, options.url.path + "/v1/models", 11};
  SetHeaders(options, &request);
  Connection connection(io);
  connection.stream.expires_after(std::chrono::microseconds(kModelTimeoutUs));
  Response response;
  std::string body;
  const BytesFn on_bytes = [&](int, std::string_view bytes) {
    if (body.size() < kMaxErrorBodyBytes) body += bytes;
  };
  asio::co_spawn(
      io,
      [&]() -> asio::awaitable<void> {
        response = co_await Exchange(connection, peers, request, on_bytes);
      },
      asio::detached);
  io.run();
  const auto fail = [&](const std::string& why) {
    return Status(StatusCode::kUnavailable, "url: no list of models from the server: " + why,
                  "url");
  };
  if (!response.error.empty()) return fail(response.error);
  if (response.status != 200) return fail(DescribeHttpError(response.status, body));
  const auto json = nlohmann::json::parse(body, nullptr, /*allow_exceptions=*/false);
  const auto id = nlohmann::json::json_pointer("/data/0/id");
  if (!json.is_object() || !json.contains(id) || !json[id].is_string()) {
    return fail("no data[0].id in the answer");
  }
  return json[id].get<std::string>();
}

Result<LoadOutcome> RunLoad(const std::vector<WorkloadRequest>& requests,
                            const LoadOptions& options) {
  return LoadRun(requests, options).Run();
}

}  // namespace skein
