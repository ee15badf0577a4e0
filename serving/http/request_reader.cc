#include "serving/http/request_reader.h"

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>

#include "core/base/error.h"
#include "serving/http/http_error.h"

namespace cairn::serving {
namespace {

namespace http = boost::beast::http;
using boost::beast::iequals;

// A sender that only announces a body must not make us take the memory for it.
constexpr std::uint64_t kReserveMax = 16 << 10;

// The fields of a header of many tiny ones would take twenty times the header's own bytes.
constexpr std::size_t kFieldsMax = 128;

std::string text_of(boost::beast::string_view text) { return {text.data(), text.size()}; }

std::string lower(boost::beast::string_view text) {
  std::string out(text.size(), '\0');
  std::transform(text.begin(), text.end(), out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return out;
}

// Takes as long for a token that is wrong in its first byte as for one wrong in its last, so that
// timing tells nothing but the token's length.
bool same_secret(std::string_view given, std::string_view wanted) {
  if (given.size() != wanted.size()) return false;
  volatile unsigned char differences = 0;
  for (std::size_t i = 0; i < given.size(); ++i)
    differences = differences | static_cast<unsigned char>(given[i] ^ wanted[i]);
  return differences == 0;
}

bool has_token(const HttpRequest& request, std::string_view token) {
  constexpr std::string_view kScheme = "bearer ";
  std::string_view value = request.header("authorization");
  if (value.size() < kScheme.size() ||
      !iequals({value.data(), kScheme.size()}, {kScheme.data(), kScheme.size()}))
    return false;
  value.remove_prefix(std::min(value.find_first_not_of(' ', kScheme.size()), value.size()));
  return same_secret(value, token);
}

bool must_have_length(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

std::string too_large(const std::string& body, std::size_t limit) {
  return str(body, ", and the limit is ", limit,
             " bytes: send fewer examples per request, or raise --max-body");
}

std::string header_too_large(const ReadLimits& limits) {
  return str("the request's header has more than ", limits.header_max,
             " bytes: send fewer or shorter fields");
}

}  // namespace

RequestParser::RequestParser(const ReadLimits& limits, HttpRequest& request)
    : limits_(limits), request_(request) {
  header_limit(static_cast<std::uint32_t>(limits.header_max));
  // The limit is checked below, where the message can name the body's own size.
  body_limit(boost::none);
}

void RequestParser::refuse(unsigned status, std::string_view text, ErrorCode& error) {
  refusal_ = error_response(status, text);
  error = http::error::bad_value;  // any error ends the parsing
}

// Beast's own limit is for what lies before it at once, so that fields that come one by one would
// never reach it.
void RequestParser::count(std::size_t bytes, ErrorCode& error) {
  header_bytes_ += bytes;
  if (header_bytes_ > limits_.header_max) refuse(431, header_too_large(limits_), error);
}

void RequestParser::on_request_impl(http::verb verb, Text method, Text target, int version,
                                    ErrorCode& error) {
  count(method.size() + target.size(), error);
  request_.method = text_of(method);
  request_.target = text_of(target);
  request_.headers.reserve(8);
  http11_ = version >= 11;
  head_ = verb == http::verb::head;
}

void RequestParser::on_response_impl(int, Text, int, ErrorCode&) {}

void RequestParser::on_field_impl(http::field field, Text name, Text value, ErrorCode& error) {
  count(name.size() + value.size() + 4, error);
  if (error || is_header_done()) return;  // a trailer
  if (request_.headers.size() == kFieldsMax)
    return refuse(431, str("the request's header has more than ", kFieldsMax, " fields"), error);
  if (field == http::field::host) ++hosts_;
  // Beast itself passes over encodings that it does not know. Their body would then be read as the
  // next request.
  if (field == http::field::transfer_encoding && !iequals(value, "chunked"))
    foreign_encoding_ = true;
  request_.headers.emplace_back(lower(name), text_of(value));
}

void RequestParser::on_header_impl(ErrorCode& error) {
  if (http11_ ? hosts_ != 1 : hosts_ > 1)
    return refuse(400, "the request must have one Host header", error);
  if (!limits_.token.empty() && !has_token(request_, limits_.token))
    return refuse(401,
                  "this server asks for a token: send the header \"Authorization: Bearer TOKEN\" "
                  "with the token of the server's --token-file",
                  error);
  if (foreign_encoding_)
    return refuse(501,
                  str("the transfer encoding \"", request_.header("transfer-encoding"),
                      "\" is not known here: send the body with a Content-Length, or chunked"),
                  error);
  check_length(error);
  if (!error) check_expectation(error);
}

void RequestParser::check_length(ErrorCode& error) {
  const auto length = content_length();
  if (!length && !chunked() && must_have_length(request_.method))
    return refuse(411,
                  str("a ", request_.method,
                      " request must say how long its body is: send a Content-Length, or the body "
                      "chunked"),
                  error);
  if (length && *length > limits_.body_max)
    refuse(413, too_large(str("the body has ", *length, " bytes"), limits_.body_max), error);
}

void RequestParser::check_expectation(ErrorCode& error) {
  const std::string_view expectation = request_.header("expect");
  if (expectation.empty()) return;
  if (!iequals({expectation.data(), expectation.size()}, "100-continue"))
    return refuse(417,
                  str("the expectation \"", expectation,
                      "\" cannot be met: leave the header Expect out, or send 100-continue"),
                  error);
  wants_continue_ = http11_ && !is_done();  // is_done(): it has no body
}

void RequestParser::on_body_init_impl(const boost::optional<std::uint64_t>& length, ErrorCode&) {
  if (length) request_.body.reserve(std::min(*length, kReserveMax));
}

std::size_t RequestParser::on_body_impl(Text bytes, ErrorCode&) {
  request_.body.append(bytes.data(), bytes.size());
  return bytes.size();
}

void RequestParser::on_chunk_header_impl(std::uint64_t size, Text extensions, ErrorCode& error) {
  count(extensions.size(), error);
  if (!error && size > limits_.body_max - request_.body.size())
    refuse(413,
           too_large(str("the chunked body has more than ", request_.body.size(),
                         " bytes, its next "
                         "chunk ",
                         size),
                     limits_.body_max),
           error);
}

std::size_t RequestParser::on_chunk_body_impl(std::uint64_t, Text bytes, ErrorCode&) {
  request_.body.append(bytes.data(), bytes.size());
  return bytes.size();
}

void RequestParser::on_finish_impl(ErrorCode&) {}

RequestReader::RequestReader(const ReadLimits& limits) : limits_(limits) { next(); }

void RequestReader::next() {
  request_ = {};
  parser_.emplace(limits_, request_);
  refusal_.reset();
  state_ = State::kReading;
  begun_ = asked_ = false;
}

// Beast 1.81 asserts that the last chunk's line has come with what follows it, and an empty chunked
// body that comes byte by byte has the line alone at first. "0\r\n\r\n" is the shortest end of a
// chunked body, so that waiting for as many bytes delays no request.
bool RequestReader::must_wait(std::size_t bytes) const {
  constexpr std::size_t kShortestEnd = 5;
  return parser_->is_header_done() && parser_->chunked() && bytes < kShortestEnd;
}

std::size_t RequestReader::read(std::string_view bytes) {
  std::size_t used = 0;
  // Empty lines in front of a request are passed over (RFC 9112, section 2.2).
  if (!begun_) used = std::min(bytes.find_first_not_of("\r\n"), bytes.size());
  while (state_ == State::kReading && used < bytes.size()) {
    if (must_wait(bytes.size() - used)) break;
    begun_ = true;
    boost::beast::error_code error;
    used += parser_->put({bytes.data() + used, bytes.size() - used}, error);
    if (error) {
      stopped(error, bytes.size() - used);
      break;
    }
    if (parser_->is_done()) {
      state_ = State::kComplete;
    } else if (parser_->wants_continue() && !asked_) {
      asked_ = true;
      // A client that has begun to send the body does not wait.
      if (used == bytes.size()) state_ = State::kContinue;
    }
  }
  return used;
}

void RequestReader::stopped(boost::beast::error_code error, std::size_t unused) {
  if (error == http::error::need_more && unused <= limits_.header_max) return;
  if (parser_->refusal()) {
    refusal_ = parser_->refusal();
    state_ = State::kRefused;
  } else if (error == http::error::header_limit || error == http::error::need_more) {
    // The parser bounds the header alone. Lines between chunks and trailers are bounded here.
    refuse(431, header_too_large(limits_));
  } else {
    refuse(400, str("the request is not HTTP/1.1: ", error.message()));
  }
}

void RequestReader::refuse(unsigned status, std::string_view text) {
  refusal_ = error_response(status, text);
  state_ = State::kRefused;
}

}  // namespace cairn::serving
