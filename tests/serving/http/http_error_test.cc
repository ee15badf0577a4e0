#include "serving/http/http_error.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/base/json.h"
#include "serving/http/response_text.h"

namespace cairn::serving {
namespace {

HttpResponse response_of(Code code) {
  try {
    throw_error(code, "a \"cause\"\n");
  } catch (...) {
    return error_response(std::current_exception());
  }
}

TEST(HttpError, EveryCodeHasItsStatus) {
  EXPECT_EQ(response_of(Code::kInvalidArgument).status, 400u);
  EXPECT_EQ(response_of(Code::kOutOfRange).status, 400u);
  EXPECT_EQ(response_of(Code::kUnauthenticated).status, 401u);
  EXPECT_EQ(response_of(Code::kPermissionDenied).status, 403u);
  EXPECT_EQ(response_of(Code::kNotFound).status, 404u);
  EXPECT_EQ(response_of(Code::kAlreadyExists).status, 409u);
  EXPECT_EQ(response_of(Code::kAborted).status, 409u);
  EXPECT_EQ(response_of(Code::kFailedPrecondition).status, 400u);
  EXPECT_EQ(response_of(Code::kResourceExhausted).status, 429u);
  EXPECT_EQ(response_of(Code::kCancelled).status, 503u);
  EXPECT_EQ(response_of(Code::kDataLoss).status, 500u);
  EXPECT_EQ(response_of(Code::kInternal).status, 500u);
  EXPECT_EQ(response_of(Code::kUnknown).status, 500u);
  EXPECT_EQ(response_of(Code::kUnimplemented).status, 501u);
  EXPECT_EQ(response_of(Code::kUnavailable).status, 503u);
  EXPECT_EQ(response_of(Code::kDeadlineExceeded).status, 504u);
}

TEST(HttpError, BodyIsJsonWithTheMessage) {
  const HttpResponse response = response_of(Code::kNotFound);
  EXPECT_EQ(response.content_type, "application/json");
  EXPECT_EQ(parse_json(response.body, "the body"), (Json{{"error", "a \"cause\"\n"}}));
}

TEST(HttpError, BytesThatAreNotUtf8StayJson) {
  EXPECT_EQ(error_response(404, "m\xff").body, "{\"error\":\"m\xEF\xBF\xBD\"}");
}

TEST(HttpError, ForeignExceptionIsAServersError) {
  const HttpResponse response =
      error_response(std::make_exception_ptr(std::runtime_error("a foreign cause")));
  EXPECT_EQ(response.status, 500u);
  EXPECT_NE(response.body.find("a foreign cause"), std::string::npos);
}

TEST(HttpError, OverloadSaysWhenToComeAgain) {
  EXPECT_EQ(response_of(Code::kResourceExhausted).headers,
            (std::vector<std::pair<std::string, std::string>>{{"Retry-After", "1"}}));
  EXPECT_EQ(response_of(Code::kResourceExhausted).rest, std::chrono::seconds(1));
  EXPECT_TRUE(response_of(Code::kUnavailable).headers.empty());
}

TEST(ResponseText, HeadHasWhatARequestNeeds) {
  std::string out;
  append_head(out, {.status = 404, .body = "{}", .headers = {{"x-cairn-step", "7"}}},
              {.keep_alive = false, .http11 = true, .date = "D"});
  EXPECT_EQ(out,
            "HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
            "Date: D\r\nx-cairn-step: 7\r\nConnection: close\r\n\r\n");
}

TEST(ResponseText, AnAnswerOfHttp10SaysThatTheConnectionStays) {
  std::string out;
  append_head(out, {.status = 204}, {.keep_alive = true, .http11 = false, .date = "D"});
  EXPECT_EQ(out, "HTTP/1.1 204 No Content\r\nDate: D\r\nConnection: keep-alive\r\n\r\n");
}

TEST(ResponseText, AValueCannotBeginAHeaderOfItsOwn) {
  std::string out;
  append_head(out, {.content_type = "a\r\nb", .headers = {{"x", "1\r\nSet-Cookie: y"}}}, {});
  EXPECT_NE(out.find("Content-Type: a  b\r\n"), std::string::npos) << out;
  EXPECT_NE(out.find("x: 1  Set-Cookie: y\r\n"), std::string::npos) << out;
}

TEST(ResponseText, DateIsInHttpsForm) {
  EXPECT_EQ(http_date(784'111'777'000'000), "Sun, 06 Nov 1994 08:49:37 GMT");
}

}  // namespace
}  // namespace cairn::serving
