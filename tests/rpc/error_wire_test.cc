#include <gtest/gtest.h>

#include "rpc/loop/error_wire.h"
#include "tests/rpc/echo_service.h"

namespace cairn::rpc {
namespace {

kj::Exception text_only(std::string text, kj::Exception::Type type = kj::Exception::Type::FAILED) {
  return kj::Exception(type, "there.cc", 1, kj::heapString(text.data(), text.size()));
}

TEST(ErrorWire, EveryCodeComesBackWithMessageAndTask) {
  for (unsigned code = 1; code <= 16; ++code) {
    auto back =
        from_kj(to_kj(static_cast<Code>(code), "table \"w\": no {such} row\n", "/job:ps/task:1"));
    EXPECT_EQ(back.code, static_cast<Code>(code));
    EXPECT_EQ(back.message, "table \"w\": no {such} row\n");
    EXPECT_EQ(back.task, "/job:ps/task:1");
  }
}

TEST(ErrorWire, AnErrorOfAClosuresInputComesBackAsOneWithItsPipeline) {
  ErrorParts sent{Code::kNotFound, "no file a.csv", "/job:worker/task:2", 41};
  auto back = from_kj(to_kj(sent));
  EXPECT_EQ(back.code, Code::kNotFound);
  EXPECT_EQ(back.task, "/job:worker/task:2");
  EXPECT_EQ(back.input_pipeline, 41u);
  try {
    throw_from_kj(to_kj(sent));
  } catch (const ClosureInputError& error) {
    EXPECT_EQ(error.pipeline(), 41u);
    EXPECT_STREQ(error.what(), "no file a.csv");
  }
  EXPECT_FALSE(from_kj(to_kj(Code::kNotFound, "no row")).input_pipeline);
}

TEST(ErrorWire, AValueThatIsNotFiniteComesBackAsSuch) {
  const ErrorParts sent{Code::kInvalidArgument, "the loss is nan", "/job:worker/task:2", {}, true};
  EXPECT_THROW(throw_from_kj(to_kj(sent)), NotFiniteError);
  const ErrorParts back = from_error_text(
      error_text(std::make_exception_ptr(NotFiniteError("the loss is nan", "/job:worker/task:2"))));
  EXPECT_TRUE(back.not_finite);
  EXPECT_EQ(back.code, Code::kInvalidArgument);
  EXPECT_EQ(back.message, "the loss is nan");
  EXPECT_EQ(back.task, "/job:worker/task:2");
  EXPECT_FALSE(from_kj(to_kj(Code::kInvalidArgument, "no row")).not_finite);
}

TEST(ErrorWire, AnErrorThatWasMetAtANodeComesBackWithItsNumber) {
  const ErrorParts plain{Code::kInvalidArgument, "node 3, x", "", {}, false, {3, "/a/b.py:4"}};
  const ErrorParts back = from_kj(to_kj(plain));
  EXPECT_EQ(back.place.node, 3);
  EXPECT_EQ(back.place.origin, "") << "lines stay where they were recorded";
  EXPECT_EQ(back.message, "node 3, x");
  const ErrorParts nan =
      from_kj(to_kj(ErrorParts{Code::kInvalidArgument, "nan", "", {}, true, {0, ""}}));
  EXPECT_TRUE(nan.not_finite);
  EXPECT_EQ(nan.place.node, 0);
  const ErrorParts input =
      from_kj(to_kj(ErrorParts{Code::kNotFound, "no", "", 41, false, {7, ""}}));
  EXPECT_EQ(input.input_pipeline, 41u);
  EXPECT_EQ(input.place.node, 7);
  EXPECT_EQ(from_kj(to_kj(Code::kNotFound, "no row")).place.node, -1);
}

TEST(ErrorWire, DecorationOfAnyNumberOfHopsComesOff) {
  auto sent = std::string(to_kj(Code::kAborted, "m").getDescription().cStr());
  auto back = from_kj(text_only("remote exception: remote exception: " + sent));
  EXPECT_EQ(back.code, Code::kAborted);
  EXPECT_EQ(back.message, "m");
  EXPECT_EQ(from_kj(text_only("remote exception: plain")).message, "plain");
}

TEST(ErrorWire, ForgedPrefixesReadAsPlainText) {
  for (auto text :
       {"{cairn ", "{cairn 99 0 }x", "{cairn 3 9999999999999999999999 }x", "{cairn 3 50 }short",
        "{cairn 0 0 }x", "{cairn 3 0 x", "{cairn 35 0 }x", "{cairn 131 0 }x", "{cairn 131 -2 0 }x",
        "{cairn 32 0 0 }x", "{cairn 49 0 0 }x", "{cairn 65 0 }x", "{cairn 64 0 }x"}) {
    EXPECT_EQ(from_kj(text_only(text)).code, Code::kUnknown) << text;
    EXPECT_EQ(from_kj(text_only(text)).message, text);
  }
}

TEST(ErrorWire, ALibraryErrorIsReadByItsType) {
  using Type = kj::Exception::Type;
  EXPECT_EQ(from_kj(text_only("x", Type::DISCONNECTED)).code, Code::kUnavailable);
  EXPECT_EQ(from_kj(text_only("x", Type::OVERLOADED)).code, Code::kResourceExhausted);
  EXPECT_EQ(from_kj(text_only("x", Type::UNIMPLEMENTED)).code, Code::kUnimplemented);
  EXPECT_EQ(from_kj(text_only("x", Type::FAILED)).code, Code::kUnknown);
}

TEST(ErrorWire, CodesSurviveACallAndNameTheTaskThatRaisedThem) {
  EchoPair pair;
  auto connection = pair.connect();
  auto client = connection->bootstrap<Echo>();
  for (unsigned code = 1; code <= 16; ++code) {
    auto request = client.failRequest();
    request.setCode(static_cast<std::uint8_t>(code));
    request.setMessage("it broke");
    auto error =
        error_of([&](auto promise) { pair.wait(kj::mv(promise)); }, request.send().ignoreResult());
    EXPECT_EQ(error.code, static_cast<Code>(code));
    EXPECT_EQ(error.message, "it broke");
    EXPECT_EQ(error.task, "/job:ps/task:1");
  }
}

Task<Code> code_seen_by_a_coroutine(Echo::Client client) {
  auto request = client.failRequest();
  request.setCode(static_cast<std::uint8_t>(Code::kAborted));
  request.setMessage("rerun");
  try {
    co_await request.send();
  } catch (const AbortedError& error) {
    co_return error.code();
  }
  co_return Code::kUnknown;
}

TEST(ErrorWire, ATaskCatchesTheClassThatTheServerThrew) {
  EchoPair pair;
  auto connection = pair.connect();
  EXPECT_EQ(pair.reactor->wait(code_seen_by_a_coroutine(connection->bootstrap<Echo>())),
            Code::kAborted);
}

}  // namespace
}  // namespace cairn::rpc
