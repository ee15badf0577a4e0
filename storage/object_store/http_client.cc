#include "storage/object_store/http_client.h"

#include <curl/curl.h>

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/base/error.h"

namespace cairn::storage {
namespace {

struct EasyEnds {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};
using Easy = std::unique_ptr<CURL, EasyEnds>;
struct ListEnds {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// The bytes that libcurl's callbacks take and give in one call.
struct Exchange {
  const HttpRequest& request;
  HttpAnswer answer;
  std::size_t sent = 0;
  bool too_long = false;
  bool header_ended = false;
};

std::size_t take_body(char* bytes, std::size_t, std::size_t size, void* to) {
  Exchange& exchange = *static_cast<Exchange*>(to);
  exchange.too_long = exchange.answer.body.size() + size > exchange.request.answer_bytes_max;
  if (exchange.too_long) return 0;  // ends the transfer
  exchange.answer.body.append(bytes, size);
  return size;
}

std::size_t give_body(char* to, std::size_t, std::size_t size, void* from) {
  Exchange& exchange = *static_cast<Exchange*>(from);
  const std::string_view left = exchange.request.body.substr(exchange.sent);
  const std::size_t given = std::min(size, left.size());
  std::memcpy(to, left.data(), given);
  exchange.sent += given;
  return given;
}

// libcurl sends again by itself what it had begun to send on a connection that was already gone.
int rewind_body(void* from, curl_off_t offset, int origin) {
  if (origin != SEEK_SET || offset < 0) return CURL_SEEKFUNC_FAIL;
  static_cast<Exchange*>(from)->sent = static_cast<std::size_t>(offset);
  return CURL_SEEKFUNC_OK;
}

std::size_t take_header(char* bytes, std::size_t, std::size_t size, void* to) {
  const std::string_view line(bytes, size);
  bool& header_ended = static_cast<Exchange*>(to)->header_ended;
  header_ended = line == "\r\n" || (header_ended && !line.starts_with("HTTP/"));
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return size;
  std::string name(line.substr(0, colon));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  std::string_view value = line.substr(colon + 1);
  while (!value.empty() && (value.front() == ' ')) value.remove_prefix(1);
  while (!value.empty() && (value.back() == '\r' || value.back() == '\n')) value.remove_suffix(1);
  static_cast<Exchange*>(to)->answer.headers[std::move(name)] = value;
  return size;
}

// An option that this libcurl lacks would be a call that is made wrongly.
template <typename Value>
void set(CURL* handle, CURLoption option, Value value) {
  const CURLcode code = curl_easy_setopt(handle, option, value);
  CAIRN_CHECK(code == CURLE_OK, "libcurl refuses an option: ", curl_easy_strerror(code));
}

long milliseconds(Duration duration) {
  return static_cast<long>(std::chrono::duration_cast<std::chrono::milliseconds>(duration).count());
}

}  // namespace

struct HttpClient::Handles {
  std::mutex mutex;  // guards `idle`
  std::vector<Easy> idle;

  Easy take() {
    const std::lock_guard hold(mutex);
    if (idle.empty()) return Easy(curl_easy_init());
    Easy handle = std::move(idle.back());
    idle.pop_back();
    return handle;
  }
  void give(Easy handle) {
    const std::lock_guard hold(mutex);
    idle.push_back(std::move(handle));
  }
};

HttpClient::HttpClient(HttpLimits limits) : limits_(limits), handles_(std::make_unique<Handles>()) {
  // Not safe while other threads call it, in older releases; once a process.
  static const CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
  CAIRN_CHECK(ready == CURLE_OK, "libcurl cannot begin: ", curl_easy_strerror(ready));
}
HttpClient::~HttpClient() = default;

HttpAnswer HttpClient::send(const HttpRequest& request) {
  Easy handle = handles_->take();
  if (handle == nullptr) throw ResourceExhaustedError("libcurl has no memory for a connection");
  CURL* curl = handle.get();
  curl_easy_reset(curl);  // connections stay
  Exchange exchange{request};
  set(curl, CURLOPT_URL, request.url.c_str());
  set(curl, CURLOPT_CUSTOMREQUEST, request.method.c_str());
  set(curl, CURLOPT_NOSIGNAL, 1L);
  set(curl, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(limits_.connect));
  set(curl, CURLOPT_TIMEOUT_MS, milliseconds(limits_.whole));
  set(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  set(curl, CURLOPT_LOW_SPEED_TIME, std::max(1L, milliseconds(limits_.stall) / 1000));
  set(curl, CURLOPT_WRITEFUNCTION, &take_body);
  set(curl, CURLOPT_WRITEDATA, &exchange);
  set(curl, CURLOPT_HEADERFUNCTION, &take_header);
  set(curl, CURLOPT_HEADERDATA, &exchange);
  if (request.method == "HEAD") set(curl, CURLOPT_NOBODY, 1L);
  if (request.method == "PUT" || request.method == "POST") {
    set(curl, CURLOPT_UPLOAD, 1L);
    set(curl, CURLOPT_INFILESIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(curl, CURLOPT_READFUNCTION, &give_body);
    set(curl, CURLOPT_READDATA, &exchange);
    set(curl, CURLOPT_SEEKFUNCTION, &rewind_body);
    set(curl, CURLOPT_SEEKDATA, &exchange);
    set(curl, CURLOPT_UPLOAD_BUFFERSIZE, 256L << 10);
  }
  std::unique_ptr<curl_slist, ListEnds> headers(curl_slist_append(nullptr, "Expect:"));
  for (const std::string& header : request.headers)
    curl_slist_append(headers.get(), header.c_str());
  set(curl, CURLOPT_HTTPHEADER, headers.get());
  const CURLcode code = curl_easy_perform(curl);
  long status = 0;
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  exchange.answer.status = static_cast<int>(status);
  if (exchange.too_long)
    exchange.answer.trouble = "the answer is longer than what was asked for";
  else if (code != CURLE_OK)
    exchange.answer.trouble = curl_easy_strerror(code);
  // libcurl takes an answer that ends within its header for one without a body.
  else if (!exchange.header_ended)
    exchange.answer.trouble = "the connection ended within the answer";
  handles_->give(std::move(handle));
  return std::move(exchange.answer);
}

}  // namespace cairn::storage
