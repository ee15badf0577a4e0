#include "serving/api/routes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace cairn::serving {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string not_found(const std::string& target) {
  try {
    parse_route("GET", target);
  } catch (const NotFoundError& error) {
    return error.what();
  }
  return "";
}

std::string not_a_path(const std::string& target) {
  try {
    parse_route("GET", target);
  } catch (const InvalidArgumentError& error) {
    return error.what();
  }
  return "";
}

TEST(Routes, EachVerbOfTensorFlowServingHasItsOwn) {
  using enum RouteKind;
  for (const auto& [verb, kind] : {std::pair("predict", kTfPredict),
                                   {"classify", kTfClassify},
                                   {"regress", kTfRegress},
                                   {"recommend", kTfRecommend}}) {
    const Route route = parse_route("POST", str("/v1/models/half_plus_three:", verb));
    EXPECT_EQ(route.kind, kind);
    EXPECT_EQ(route.model, "half_plus_three");
    EXPECT_EQ(route.version, std::nullopt);
    const Route version = parse_route("POST", str("/v1/models/m/versions/123:", verb));
    EXPECT_EQ(version.kind, kind);
    EXPECT_EQ(version.model, "m");
    EXPECT_EQ(version.version, std::optional<std::int64_t>(123));
    const Route label = parse_route("POST", str("/v1/models/m/labels/stable:", verb));
    EXPECT_EQ(label.kind, kind);
    EXPECT_EQ(label.label, "stable");
  }
}

TEST(Routes, StatusAndMetadataAreRead) {
  EXPECT_EQ(parse_route("GET", "/v1/models/m").kind, RouteKind::kTfStatus);
  EXPECT_EQ(parse_route("HEAD", "/v1/models/m/versions/2").version, std::optional<std::int64_t>(2));
  EXPECT_EQ(parse_route("GET", "/v1/models/m/metadata").kind, RouteKind::kTfMetadata);
  const Route label = parse_route("GET", "/v1/models/m/labels/a/metadata");
  EXPECT_EQ(label.kind, RouteKind::kTfMetadata);
  EXPECT_EQ(label.label, "a");
}

TEST(Routes, TheOpenInferenceProtocolsPathsAreRead) {
  EXPECT_EQ(parse_route("GET", "/v2").kind, RouteKind::kInferServer);
  EXPECT_EQ(parse_route("GET", "/v2/health/live").kind, RouteKind::kInferLive);
  EXPECT_EQ(parse_route("GET", "/v2/health/ready").kind, RouteKind::kInferReady);
  EXPECT_EQ(parse_route("GET", "/v2/models/m").kind, RouteKind::kInferModel);
  EXPECT_EQ(parse_route("GET", "/v2/models/m/ready").kind, RouteKind::kInferModelReady);
  EXPECT_EQ(parse_route("POST", "/v2/models/m/infer").kind, RouteKind::kInfer);
  const Route version = parse_route("POST", "/v2/models/m:1/versions/7/infer");
  EXPECT_EQ(version.kind, RouteKind::kInfer);
  EXPECT_EQ(version.model, "m:1");
  EXPECT_EQ(version.version, std::optional<std::int64_t>(7));
  EXPECT_EQ(parse_route("GET", "/metrics").kind, RouteKind::kMetrics);
}

TEST(Routes, RawIsAParameterOfPredict) {
  for (const char* target : {"/v1/models/m:predict?raw", "/v1/models/m:predict?raw=1",
                             "/v1/models/m:predict?x=2&raw", "http://h:1/v1/models/m:predict?raw"})
    EXPECT_TRUE(parse_route("POST", target).raw) << target;
  for (const char* target :
       {"/v1/models/m:predict", "/v1/models/m:predict?raw=0", "/v1/models/m:predict?",
        "/v1/models/m:predict?raws&x=raw", "/v1/models/m:classify?raw"})
    EXPECT_FALSE(parse_route("POST", target).raw) << target;
}

TEST(Routes, NamesAreDecodedBehindTheirSeparators) {
  EXPECT_EQ(parse_route("POST", "/v1/models/a%2Fb%3Ac:predict").model, "a/b:c");
  EXPECT_EQ(parse_route("GET", "/v1/models/%e2%9c%93/labels/x%20y").label, "x y");
  EXPECT_EQ(parse_route("POST", "/v1/models/a:b:predict").model, "a:b");
  for (const char* target : {"/v1/models/%", "/v1/models/%4", "/v1/models/%zz", "/v2/models/%4g"})
    EXPECT_THAT(not_a_path(target), HasSubstr("is not a percent sign with two")) << target;
}

TEST(Routes, PathsThatAreNoneNameTheNearest) {
  EXPECT_THAT(not_found("/v1/model/m"), HasSubstr("did you mean \"models\"?"));
  EXPECT_THAT(not_found("/v1/models/m:predit"),
              AllOf(HasSubstr("\"predit\" is not known"), HasSubstr("did you mean \"predict\"?")));
  EXPECT_THAT(not_found("/v1/models/m:"), HasSubstr("\"predict\", \"classify\""));
  EXPECT_THAT(not_found("/v1/models/m/version/1"), HasSubstr("did you mean \"versions\"?"));
  EXPECT_THAT(not_found("/v1/models/m/metdata"), HasSubstr("did you mean \"metadata\"?"));
  EXPECT_THAT(not_found("/v2/health/alive"), HasSubstr("did you mean \"live\"?"));
  EXPECT_THAT(not_found("/v2/models/m/inference"), HasSubstr("\"infer\""));
  EXPECT_THAT(not_found("/metric"), HasSubstr("did you mean \"metrics\"?"));
  for (const char* target : {"",
                             "/",
                             "//",
                             "v1",
                             "*",
                             "/v1",
                             "/v1/",
                             "/v1/models",
                             "/v1/models/",
                             "/v1/models//versions/1",
                             "/v1/models/:predict",
                             "/v1/models/m/",
                             "/v1/models/m/versions",
                             "/v1/models/m/versions/1/labels/a",
                             "/v1/models/m/labels/:predict",
                             "/v1/models/m/metadata/x",
                             "/v2/models",
                             "/v2/health",
                             "/v2/health/live/x",
                             "/v2/",
                             "/v2/models/m/versions/1/versions/1",
                             "/v2/models/m/infer/x",
                             "/metrics/x",
                             "/favicon.ico",
                             "http://host"})
    EXPECT_THAT(not_found(target), HasSubstr("there is no path")) << target;
}

TEST(Routes, VersionsAreNumbers) {
  for (const char* version : {"x", "-1", "1.5", "9223372036854775808", "1%32"})
    EXPECT_THAT(not_a_path(str("/v1/models/m/versions/", version)),
                HasSubstr("no version's number"))
        << version;
}

TEST(Routes, AWrongMethodIsToldTheAllowedOnes) {
  const auto allowed = [](const char* method, const char* target) -> std::string {
    try {
      parse_route(method, target);
    } catch (const WrongMethodError& error) {
      EXPECT_THAT(error.what(), HasSubstr(method));
      return error.allowed();
    }
    return "all";
  };
  EXPECT_EQ(allowed("GET", "/v1/models/m:predict"), "POST");
  EXPECT_EQ(allowed("PUT", "/v2/models/m/infer"), "POST");
  EXPECT_EQ(allowed("POST", "/v1/models/m"), "GET, HEAD");
  EXPECT_EQ(allowed("DELETE", "/metrics"), "GET, HEAD");
  EXPECT_EQ(allowed("get", "/metrics"), "GET, HEAD");
}

}  // namespace
}  // namespace cairn::serving
