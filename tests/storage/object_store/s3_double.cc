#include "tests/storage/object_store/s3_double.h"

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <algorithm>
#include <list>
#include <optional>
#include <set>
#include <utility>

#include "core/base/error.h"

namespace cairn::storage {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using boost::beast::error_code;
using Answer = http::response<http::string_body>;

const S3Credentials kKeys{"the-key", "the-secret"};

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    out.push_back(static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16)));
    i += 2;
  }
  return out;
}

std::map<std::string, std::string> query_of(std::string_view target) {
  std::map<std::string, std::string> query;
  const std::size_t mark = target.find('?');
  if (mark == std::string_view::npos) return query;
  std::string_view left = target.substr(mark + 1);
  while (!left.empty()) {
    const std::string_view pair = left.substr(0, left.find('&'));
    left.remove_prefix(std::min(left.size(), pair.size() + 1));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    query[decoded(pair.substr(0, equals))] =
        equals == pair.size() ? "" : decoded(pair.substr(equals + 1));
  }
  return query;
}

std::string xml_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else
      out.push_back(c);
  }
  return out;
}

Answer answer(int status, std::string body = "") {
  Answer made(static_cast<http::status>(status), 11);
  made.body() = std::move(body);
  return made;
}
Answer failure(int status, const std::string& code) {
  return answer(status, "<Error><Code>" + code + "</Code><Message>by the double</Message></Error>");
}

}  // namespace

struct S3Double::State {
  using Request = http::request<http::string_body>;
  using Socket = asio::ip::tcp::socket;

  asio::io_context context;
  asio::ip::tcp::acceptor acceptor{context, {asio::ip::address_v4::loopback(), 0}};
  mutable std::mutex mutex;  // guards all that follows
  std::function<Fault(const SeenRequest&)> faults;
  std::vector<SeenRequest> seen;
  std::map<std::string, std::string> objects;
  std::map<std::string, std::map<int, std::string>> uploads;  // parts, by number
  std::map<std::string, std::string> keys_of_uploads;         // with the bucket
  int next_upload = 1;
  std::list<Socket*> open;
  bool ending = false;
  std::size_t* page = nullptr;
  std::vector<std::thread> connections;
  std::thread accepting;

  void accept() {
    for (;;) {
      auto socket = std::make_shared<Socket>(context);
      error_code error;
      acceptor.accept(*socket, error);
      const std::lock_guard hold(mutex);
      if (error || ending) return;
      connections.emplace_back([this, socket] { serve(*socket); });
    }
  }

  void serve(Socket& socket) {
    {
      const std::lock_guard hold(mutex);
      open.push_back(&socket);
    }
    boost::beast::flat_buffer buffer;
    while (serve_one(socket, buffer)) {
    }
    const std::lock_guard hold(mutex);
    open.remove(&socket);
    error_code ignored;
    socket.shutdown(Socket::shutdown_both, ignored);
    socket.close(ignored);
  }

  // False: the connection is to end.
  bool serve_one(Socket& socket, boost::beast::flat_buffer& buffer) {
    error_code error;
    http::request_parser<http::string_body> parser;
    parser.body_limit(std::uint64_t{1} << 30);
    http::read_header(socket, buffer, parser, error);
    if (error) return false;
    SeenRequest request{std::string(parser.get().method_string()),
                        std::string(parser.get().target())};
    request.body_bytes = parser.content_length().value_or(0);
    request.conditional = parser.get().count(http::field::if_none_match) > 0;
    const Fault fault = note(request);
    if (fault == Fault::kCutInside) {
      while (!error && !parser.is_done() && parser.get().body().size() < request.body_bytes / 2)
        http::read_some(socket, buffer, parser, error);
      return false;
    }
    http::read(socket, buffer, parser, error);
    if (error) return false;
    if (fault == Fault::kNoAnswer) {
      char byte = 0;
      socket.read_some(asio::buffer(&byte, 1), error);  // until the client hangs up
      return false;
    }
    Answer made = fault == Fault::kSlowDown         ? failure(503, "SlowDown")
                  : fault == Fault::kNotImplemented ? failure(501, "NotImplemented")
                                                    : carry_out(parser.get());
    if (fault == Fault::kCutBeforeAnswer) return false;
    return send(socket, parser.get(), made, fault);
  }

  bool send(Socket& socket, const Request& request, Answer& made, Fault fault) {
    error_code error;
    made.keep_alive(true);
    if (request.method() == http::verb::head) {
      const std::string size(made["x-size"]);
      made.content_length(size.empty() ? 0 : std::stoull(size));
      made.body().clear();
      http::response_serializer<http::string_body> head(made);
      http::write_header(socket, head, error);
      return !error;
    }
    made.prepare_payload();
    std::ostringstream text;
    text << made;
    const std::string bytes = text.str();
    const std::size_t sent = fault == Fault::kCutInsideAnswer ? bytes.size() / 2 : bytes.size();
    asio::write(socket, asio::buffer(bytes.data(), sent), error);
    return !error && fault != Fault::kCutInsideAnswer;
  }

  Fault note(const SeenRequest& request) {
    const std::lock_guard hold(mutex);
    seen.push_back(request);
    return faults ? faults(request) : Fault::kNone;
  }

  static bool signed_well(const Request& request) {
    const std::string target(request.target());
    S3Request made{.method = std::string(request.method_string()),
                   .path = target.substr(0, target.find('?')),
                   .query = query_of(target)};
    const std::string given(request["authorization"]);
    const std::size_t begin = given.find("SignedHeaders=") + 14;
    std::string names = given.substr(begin, given.find(',', begin) - begin) + ";";
    for (std::size_t end = names.find(';'); end != std::string::npos; end = names.find(';')) {
      const std::string name = names.substr(0, end);
      made.headers[name] = std::string(request[name]);
      names.erase(0, end + 1);
    }
    for (const char* needed : {"host", "x-amz-date", "x-amz-content-sha256"})
      if (made.headers[needed].empty()) return false;
    return made.headers["x-amz-content-sha256"] == content_hash(request.body()) &&
           given == s3_authorization(made, "us-east-1", kKeys);
  }

  Answer carry_out(const Request& request) {
    if (!signed_well(request)) return failure(403, "SignatureDoesNotMatch");
    const std::lock_guard hold(mutex);
    const std::string target(request.target());
    const std::string key = decoded(std::string_view(target).substr(1, target.find('?') - 1));
    auto query = query_of(target);
    if (query.contains("uploads") || query.contains("uploadId"))
      return multipart(request, key, query);
    switch (request.method()) {
      case http::verb::put: {
        if (request.count(http::field::if_none_match) > 0 && objects.contains(key))
          return failure(412, "PreconditionFailed");
        objects[key] = request.body();
        return answer(200);
      }
      case http::verb::delete_: objects.erase(key); return answer(204);
      case http::verb::get:
        return query.contains("list-type") ? list(key, query) : get(request, key);
      case http::verb::head: {
        Answer made = objects.contains(key) ? answer(200) : answer(404);
        made.set("x-size", std::to_string(objects.contains(key) ? objects[key].size() : 0));
        return made;
      }
      default: return failure(405, "MethodNotAllowed");
    }
  }

  Answer get(const Request& request, const std::string& key) {
    if (!objects.contains(key)) return failure(404, "NoSuchKey");
    const std::string& all = objects[key];
    const std::string range(request[http::field::range]);  // "bytes=3-9"
    const std::size_t begin = std::stoull(range.substr(6)),
                      end = std::stoull(range.substr(range.find('-') + 1)) + 1;
    if (begin >= all.size()) return failure(416, "InvalidRange");
    return answer(206, all.substr(begin, end - begin));
  }

  Answer list(const std::string& bucket, std::map<std::string, std::string>& query) {
    const std::string prefix = bucket + "/" + query["prefix"];
    std::string body;
    std::set<std::string> prefixes;
    std::size_t listed = 0;
    const std::string after = query["continuation-token"];
    for (auto at = objects.lower_bound(prefix); at != objects.end(); ++at) {
      if (!at->first.starts_with(prefix)) break;
      if (!after.empty() && at->first <= after) continue;
      const std::string key = at->first.substr(bucket.size() + 1);
      const std::size_t slash =
          query["delimiter"].empty() ? std::string::npos : key.find('/', query["prefix"].size());
      if (listed++ == *page)
        return answer(200,
                      body + str("<IsTruncated>true</IsTruncated><NextContinuationToken>",
                                 xml_escaped(std::prev(at)->first), "</NextContinuationToken>"));
      if (slash == std::string::npos)
        body += str("<Contents><Key>", xml_escaped(key), "</Key><Size>", at->second.size(),
                    "</Size></Contents>");
      else if (prefixes.insert(key.substr(0, slash + 1)).second)
        body += str("<CommonPrefixes><Prefix>", xml_escaped(key.substr(0, slash + 1)),
                    "</Prefix></CommonPrefixes>");
    }
    return answer(200, body + "<IsTruncated>false</IsTruncated>");
  }

  Answer list_uploads(const std::string& prefix) const {
    std::string body;
    std::size_t listed = 0;
    for (const auto& [id, parts] : uploads) {
      const std::string& key = keys_of_uploads.at(id);
      if (!key.starts_with(prefix)) continue;
      if (listed++ == *page) return answer(200, body + "<IsTruncated>true</IsTruncated>");
      body += str("<Upload><Key>", xml_escaped(key.substr(key.find('/') + 1)), "</Key><UploadId>",
                  id, "</UploadId></Upload>");
    }
    return answer(200, body + "<IsTruncated>false</IsTruncated>");
  }

  Answer multipart(const Request& request, const std::string& key,
                   std::map<std::string, std::string>& query) {
    const std::string id = query["uploadId"];
    if (request.method() == http::verb::post && query.contains("uploads")) {
      const std::string made = str("upload ", next_upload++);
      uploads[made];
      keys_of_uploads[made] = key;
      return answer(200, "<UploadId>" + made + "</UploadId>");
    }
    if (request.method() == http::verb::get) return list_uploads(key + "/" + query["prefix"]);
    if (!uploads.contains(id)) return failure(404, "NoSuchUpload");
    if (request.method() == http::verb::put) {
      uploads[id][std::stoi(query["partNumber"])] = request.body();
      Answer made = answer(200);
      made.set(http::field::etag, "\"" + content_hash(request.body()) + "\"");
      return made;
    }
    std::string whole;
    if (request.method() == http::verb::post)
      for (const auto& [number, part] : uploads[id]) {
        if (request.body().find(content_hash(part)) == std::string::npos)
          return failure(400, "InvalidPart");
        whole += part;
      }
    uploads.erase(id);
    if (request.method() == http::verb::delete_) return answer(204);
    objects[key] = whole;
    return answer(200, "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>");
  }
};

S3Double::S3Double() : state_(std::make_unique<State>()) {
  state_->page = &keys_a_page;
  state_->accepting = std::thread([this] { state_->accept(); });
}

S3Double::~S3Double() {
  {
    const std::lock_guard hold(state_->mutex);
    state_->ending = true;
    error_code ignored;
    for (auto* socket : state_->open)
      socket->shutdown(asio::ip::tcp::socket::shutdown_both, ignored);
  }
  // accept() blocks until somebody comes.
  asio::ip::tcp::socket last(state_->context);
  error_code ignored;
  last.connect(state_->acceptor.local_endpoint(), ignored);
  state_->accepting.join();
  for (std::thread& connection : state_->connections) connection.join();
}

std::string S3Double::endpoint() const {
  return str("http://127.0.0.1:", state_->acceptor.local_endpoint().port());
}

S3Options S3Double::options() const {
  return {.endpoint = endpoint(),
          .bucket = "bucket",
          .credentials = kKeys,
          .part_bytes = 100'000,
          .limits = {.stall = std::chrono::seconds(1), .whole = std::chrono::seconds(20)},
          .pause = std::chrono::milliseconds(1)};
}

void S3Double::set_faults(std::function<Fault(const SeenRequest&)> faults) {
  const std::lock_guard hold(state_->mutex);
  state_->faults = std::move(faults);
}
std::vector<SeenRequest> S3Double::seen() const {
  const std::lock_guard hold(state_->mutex);
  return state_->seen;
}
void S3Double::forget() {
  const std::lock_guard hold(state_->mutex);
  state_->seen.clear();
}
std::map<std::string, std::string> S3Double::objects() const {
  const std::lock_guard hold(state_->mutex);
  return state_->objects;
}
std::size_t S3Double::uploads() const {
  const std::lock_guard hold(state_->mutex);
  return state_->uploads.size();
}

}  // namespace cairn::storage
