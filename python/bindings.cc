// The Python module skein._skein: a loaded model and the server's routes in this process. The
// routes define requests and answers; skein/llm.py gives them the form of vLLM and
// sentence-transformers.

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "apps/host/model_host.h"
#include "server/local_routes.h"

namespace nb = nanobind;

namespace skein {
namespace {

// A Python object that any thread may drop.
std::shared_ptr<nb::object> Shared(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* held) {
            const nb::gil_scoped_acquire gil;
            delete held;
          }};
}

std::runtime_error ErrorOf(const Status& status) { return std::runtime_error(status.message()); }

ModelHostOptions ParseOptions(std::vector<std::string> arguments) {
  ModelHostOptions options;
  CLI::App app;
  app.set_help_flag();
  AddModelHostOptions(&app, &options);
  app.add_option("--lora", options.adapters)->expected(1)->take_all();
  app.add_option("--max-wait", options.max_wait_s)->check(CLI::Range(0.0, 86400.0));
  options.show_progress = false;
  std::ranges::reverse(arguments);  // as CLI11 wants them
  try {
    app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    throw nb::value_error(error.what());
  }
  return options;
}

// Thread rule: any thread that holds the interpreter's lock, which no wait here keeps.
class LocalModel {
 public:
  // `arguments`: MODEL and options of `skein serve`.
  explicit LocalModel(std::vector<std::string> arguments) {
    const ModelHostOptions options = ParseOptions(std::move(arguments));
    const nb::gil_scoped_release released;
    Result<std::unique_ptr<ModelHost>> host = ModelHost::Load(options);
    if (!host.ok()) throw ErrorOf(host.status());
    host_ = std::move(host).value();
    // The samples of requests without a seed differ, and are the same in every run.
    routes_ = std::make_unique<LocalRoutes>(
        RegistryOf(*host_), [next = uint64_t{0}]() mutable { return next += 0x9E3779B97F4A7C15; });
  }
  ~LocalModel() { Close(); }
  LocalModel(const LocalModel&) = delete;
  LocalModel& operator=(const LocalModel&) = delete;

  // Asks POST `path`; `done(status, body)` is called on another thread.
  void Post(const std::string& path, const nb::bytes& body, nb::object done) {
    if (routes_ == nullptr) throw std::runtime_error("the model is closed");
    if (!routes_->Has(path)) throw nb::value_error(("there is no route " + path).c_str());
    std::string text(body.c_str(), body.size());
    const std::shared_ptr<nb::object> held = Shared(std::move(done));
    const nb::gil_scoped_release released;
    {
      const std::lock_guard lock(mutex_);
      ++num_open_;
    }
    routes_->Post(path, std::move(text), [this, held](HttpResponse response) {
      {
        const nb::gil_scoped_acquire gil;
        try {
          (*held)(response.status, nb::bytes(response.body.data(), response.body.size()));
        } catch (nb::python_error& error) {
          error.discard_as_unraisable("skein");
        }
      }
      const std::lock_guard lock(mutex_);
      --num_open_;
      answered_.notify_all();
    });
  }

  // Ends the requests that run now; each is answered with an error.
  void Abort() {
    const nb::gil_scoped_release released;
    if (routes_ != nullptr) routes_->Abort();
  }

  // Ends what runs and frees the model.
  void Close() {
    if (routes_ == nullptr) return;
    std::unique_ptr<LocalRoutes> routes = std::move(routes_);
    std::unique_ptr<ModelHost> host = std::move(host_);
    const nb::gil_scoped_release released;
    routes->Abort();
    {
      std::unique_lock lock(mutex_);
      answered_.wait(lock, [this] { return num_open_ == 0; });
    }
    routes.reset();  // before the models that it asks
    host.reset();
  }

  nb::dict Info() const {
    if (host_ == nullptr) throw std::runtime_error("the model is closed");
    const ModelEntry& entry = host_->entry();
    nb::dict info;
    info["name"] = entry.name();
    info["model_dir"] = host_->model_dir();
    info["max_model_len"] = entry.max_model_len;
    info["max_num_seqs"] = entry.engine->Limits().max_num_seqs;
    info["max_queued_requests"] = entry.engine->Limits().max_queued_requests;
    info["generates"] = entry.traits.generates;
    info["embeds"] = entry.traits.embeds;
    info["classifies"] = entry.traits.classifies;
    info["class_labels"] = entry.traits.class_labels;
    info["embedding_size"] = entry.traits.embedding_size;
    return info;
  }

 private:
  std::unique_ptr<ModelHost> host_;
  std::unique_ptr<LocalRoutes> routes_;
  std::mutex mutex_;
  std::condition_variable answered_;
  int64_t num_open_ = 0;  // guarded by mutex_
};

}  // namespace

NB_MODULE(_skein, module) {
  spdlog::set_level(spdlog::level::warn);
  module.attr("__version__") = SKEIN_VERSION;
  nb::class_<LocalModel>(module, "LocalModel")
      .def(nb::init<std::vector<std::string>>())
      .def("post", &LocalModel::Post)
      .def("abort", &LocalModel::Abort)
      .def("close", &LocalModel::Close)
      .def("info", &LocalModel::Info);
}

}  // namespace skein
