#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "server/batches/batch_service.h"
#include "server/batches/multipart.h"
#include "server/generation/generation_call.h"
#include "server/json/request_body.h"
#include "server/routes.h"

namespace skein {
namespace {

constexpr std::string_view kFiles = "/v1/files/";
constexpr std::string_view kBatches = "/v1/batches/";

Result<BatchService*> ServiceOf(const ServerContext& context) {
  if (context.batches != nullptr) return context.batches;
  return Status(StatusCode::kNotFound,
                "this server keeps no files and batches: start it with --batch-dir DIR");
}

Status Send(const Result<Json>& json, Responder* responder) {
  SKEIN_RETURN_IF_ERROR(json.status());
  HttpResponse response;
  response.body = DumpJson(json.value());
  responder->Send(std::move(response));
  return Status::Ok();
}

// Makes one page of a list, as the request asks: at most `limit` entries behind the entry with the
// id `after`. The request's `order` asc lists the oldest entries first. `entries` has the latest
// first.
Result<Json> Page(const HttpRequest& request, std::vector<Json> entries, int limit, int max_limit) {
  if (const auto order = request.Parameter("order")) {
    if (*order != "asc" && *order != "desc") {
      return Status(StatusCode::kInvalidArgument, "order must be asc or desc, got " + *order,
                    "order");
    }
    if (*order == "asc") std::ranges::reverse(entries);
  }
  if (const auto text = request.Parameter("limit")) {
    const char* const end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, limit);
    if (read.ec != std::errc() || read.ptr != end || limit < 1 || limit > max_limit) {
      return Status(StatusCode::kInvalidArgument,
                    "limit must be from 1 to " + std::to_string(max_limit) + ", got " + *text,
                    "limit");
    }
  }
  auto begin = entries.begin();
  if (const auto after = request.Parameter("after")) {
    begin = std::ranges::find_if(entries, [&](const Json& entry) { return entry["id"] == *after; });
    if (begin == entries.end()) {
      return Status(StatusCode::kInvalidArgument,
                    "after must be the id of an entry of this list, got " + *after, "after");
    }
    ++begin;
  }
  const auto end = begin + std::min<std::ptrdiff_t>(limit, entries.end() - begin);
  Json list;
  list["object"] = "list";
  list["data"] = Json::array();
  list["first_id"] = begin == end ? Json(nullptr) : (*begin)["id"];
  list["last_id"] = begin == end ? Json(nullptr) : (*(end - 1))["id"];
  list["has_more"] = end != entries.end();
  for (auto entry = begin; entry != end; ++entry) list["data"].push_back(std::move(*entry));
  return list;
}

// --- /v1/files -----------------------------------------------------------------------------------

Status StartUpload(const ServerContext& context, const HttpRequest& request,
                   std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(BatchService * service, ServiceOf(context));
  SKEIN_ASSIGN_OR_RETURN(const auto parts, ParseForm(request.Header("content-type"), request.body));
  const FormPart* file = nullptr;
  std::string purpose;
  for (const FormPart& part : parts) {
    if (part.name == "file") file = &part;
    if (part.name == "purpose") purpose = std::string(part.content);
  }
  if (file == nullptr) {
    return {StatusCode::kInvalidArgument, "file must be given: a field of the form", "file"};
  }
  if (purpose != "batch") {
    return {StatusCode::kInvalidArgument,
            "purpose must be \"batch\", got \"" + purpose.substr(0, 80) + "\"", "purpose"};
  }
  const std::string name = file->filename.empty() ? "upload.jsonl" : file->filename;
  SKEIN_ASSIGN_OR_RETURN(const StoredFile stored,
                         service->files().Add(name, purpose, file->content));
  return Send(FileJson(stored), responder.get());
}

Status ListFiles(const ServerContext& context, const HttpRequest& request,
                 std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(BatchService * service, ServiceOf(context));
  const auto purpose = request.Parameter("purpose");
  std::vector<Json> files;
  for (const StoredFile& file : service->files().List()) {
    if (!purpose || file.purpose == *purpose) files.push_back(FileJson(file));
  }
  constexpr int kMax = FileStore::kFilesMax;
  return Send(Page(request, std::move(files), kMax, kMax), responder.get());
}

// /v1/files/ID describes the file, /v1/files/ID/content returns its content.
Status ShowFile(const ServerContext& context, const HttpRequest& request,
                std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(BatchService * service, ServiceOf(context));
  constexpr std::string_view kContent = "/content";
  std::string id = request.path.substr(kFiles.size());
  if (id.ends_with(kContent)) {
    id.resize(id.size() - kContent.size());
    HttpResponse response;
    response.content_type = "application/jsonl";
    SKEIN_ASSIGN_OR_RETURN(response.body, service->files().Read(id));
    responder->Send(std::move(response));
    return Status::Ok();
  }
  const auto file = service->files().Find(id);
  if (!file) return {StatusCode::kNotFound, "there is no file " + id, "file_id"};
  return Send(FileJson(*file), responder.get());
}

Status DeleteFile(const ServerContext& context, const HttpRequest& request,
                  std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(BatchService * service, ServiceOf(context));
  const std::string id = request.path.substr(kFiles.size());
  SKEIN_RETURN_IF_ERROR(service->files().Remove(id));
  Json json;
  json["id"] = id;
  json["object"] = "file";
  json["deleted"] = true;
  return Send(json, responder.get());
}

// --- /v1/batches ---------------------------------------------------------------------------------

Status CreateBatch(const ServerContext& context, const HttpRequest& request,
                   std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(BatchService * service, ServiceOf(context));
  SKEIN_ASSIGN_OR_RETURN(const Json body, ParseBody(context, request));
  return Send(service->Create(body), responder.get());
}

Status ListBatches(const ServerContext& context, const HttpRequest& request,
                   std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(BatchService * service, ServiceOf(context));
  return Send(Page(request, service->List(), 20, 100), responder.get());
}

Status ShowBatch(const ServerContext& context, const HttpRequest& request,
                 std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(BatchService * service, ServiceOf(context));
  return Send(service->Find(request.path.substr(kBatches.size())), responder.get());
}

Status CancelBatch(const ServerContext& context, const HttpRequest& request,
                   std::shared_ptr<Responder> responder) {
  SKEIN_ASSIGN_OR_RETURN(BatchService * service, ServiceOf(context));
  constexpr std::string_view kCancel = "/cancel";
  std::string id = request.path.substr(kBatches.size());
  if (!id.ends_with(kCancel)) {
    return {StatusCode::kNotFound, "there is no route POST " + request.path};
  }
  id.resize(id.size() - kCancel.size());
  return Send(service->Cancel(id), responder.get());
}

}  // namespace

void AddBatchRoutes(Router* router) {
  router->AddWork("POST", "/v1/files", Starting(&StartUpload));
  router->AddWork("GET", "/v1/files", Starting(&ListFiles));
  router->AddWork("GET", std::string(kFiles), Starting(&ShowFile));
  router->AddWork("DELETE", std::string(kFiles), Starting(&DeleteFile));
  router->AddWork("POST", "/v1/batches", Starting(&CreateBatch));
  router->AddWork("GET", "/v1/batches", Starting(&ListBatches));
  router->AddWork("GET", std::string(kBatches), Starting(&ShowBatch));
  router->AddWork("POST", std::string(kBatches), Starting(&CancelBatch));
}

}  // namespace skein
