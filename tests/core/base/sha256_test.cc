// SHA-256 against the examples that its standard publishes.
#include "core/base/sha256.h"

#include <gtest/gtest.h>

namespace cairn {
namespace {

TEST(Sha256, GivesWhatTheStandardSays) {
  EXPECT_EQ(sha256("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  EXPECT_EQ(sha256(std::string(1'000'000, 'a')),
            "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST(Sha256, IsTheSameHoweverTheBytesAreCut) {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    Sha256 hash;
    hash.update(std::string_view(text).substr(0, cut));
    hash.update(std::string_view(text).substr(cut));
    EXPECT_EQ(hash.hex(), sha256(text)) << cut;
  }
}

TEST(Sha256, IsTheSameWithoutTheProcessorsInstructions) {
  std::string text;
  for (std::size_t n = 0; n < 1000; ++n) {
    Sha256 best, portable(Sha256::Means::kPortable);
    best.update(text);
    portable.update(text);
    ASSERT_EQ(best.hex(), portable.hex()) << n << " bytes";
    text += static_cast<char>(n * n * 31 + n);
  }
}

TEST(Sha256, DependsOnEveryLength) {
  for (std::size_t n = 50; n < 70; ++n)  // around the last block's end
    EXPECT_NE(sha256(std::string(n, 'x')), sha256(std::string(n + 1, 'x')));
}

}  // namespace
}  // namespace cairn
