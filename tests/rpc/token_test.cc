#include "rpc/server/token.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "core/base/error.h"

namespace cairn::rpc {
namespace {

class Token : public ::testing::Test {
 protected:
  void SetUp() override { forget(); }
  void TearDown() override { forget(); }

  static std::string file(const std::string& text) {
    std::string path = ::testing::TempDir() + "cairn-token-test";
    std::ofstream(path) << text;
    return path;
  }

 private:
  static void forget() {
    ::unsetenv("CAIRN_TOKEN");
    ::unsetenv("CAIRN_TOKEN_FILE");
  }
};

TEST_F(Token, IsTheFilesFirstLineWithoutBlanksAtItsEnd) {
  EXPECT_EQ(read_token(file("secret \t\r\nnot this\n")), "secret");
}

TEST_F(Token, AFileThatIsMissingOrEmptyIsNamed) {
  EXPECT_THROW(read_token("/nowhere/token"), NotFoundError);
  EXPECT_THROW(read_token(file("")), NotFoundError);
}

TEST_F(Token, OfTheEnvironmentPrefersTheFile) {
  EXPECT_EQ(token_of_environment(), "");
  ::setenv("CAIRN_TOKEN", "plain", 1);
  EXPECT_EQ(token_of_environment(), "plain");
  ::setenv("CAIRN_TOKEN_FILE", file("filed\n").c_str(), 1);
  EXPECT_EQ(token_of_environment(), "filed");
}

}  // namespace
}  // namespace cairn::rpc
