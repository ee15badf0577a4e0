// Readers of arrays against bytes that other programs wrote: foreign/numpy.npz is np.savez of NumPy
// 2, foreign/python.safetensors is safetensors.numpy.save of the Python package, and the bundle
// foreign/tensorflow is TensorFlow 2.21's, of a variable of 2 x 3 after a step of Adagrad.
#include <gmock/gmock.h>

#include <cstring>
#include <fstream>
#include <iterator>

#include "core/base/error.h"
#include "tests/tools/temp_folder.h"
#include "tools/ckpt/format/array_file.h"

namespace cairn::tools::ckpt {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kNumpy = "tests/tools/ckpt/foreign/numpy.npz";
const std::string kSafetensors = "tests/tools/ckpt/foreign/python.safetensors";

std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class TextBytes final : public ByteSource {
 public:
  explicit TextBytes(std::string text) : text_(std::move(text)) {}
  std::uint64_t size() const override { return text_.size(); }
  void read(std::uint64_t offset, std::byte* to, std::size_t size) const override {
    if (offset > text_.size() || size > text_.size() - offset) throw DataLossError("too few");
    std::memcpy(to, text_.data() + offset, size);
  }

 private:
  std::string text_;
};

ArrayListing list_text(const std::string& text, const std::string& path) {
  const TextBytes source(text);
  return array_format(path) == ArrayFormat::kNpz ? list_npz(source, path)
                                                 : list_safetensors(source, path);
}

template <typename T>
std::vector<T> values_of(const ArrayListing& listing, const std::string& name) {
  for (const StoredArray& array : listing.arrays) {
    if (array.info.name != name) continue;
    std::vector<T> values(array.info.bytes() / sizeof(T));
    ArrayCursor(array).read(reinterpret_cast<std::byte*>(values.data()), array.info.bytes());
    return values;
  }
  return {};
}

class ForeignFile : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Formats, ForeignFile, testing::Values(kNumpy, kSafetensors),
                         [](const auto& info) {
                           return info.param.ends_with("npz") ? "npz" : "safetensors";
                         });

TEST_P(ForeignFile, ArraysHaveTheirNamesShapesAndElements) {
  const ArrayListing listing = list_text(file_text(GetParam()), GetParam());
  ASSERT_EQ(listing.arrays.size(), 2u);
  for (const StoredArray& array : listing.arrays) {
    if (array.info.name == "x")
      EXPECT_EQ(array.info, (ArrayInfo{"x", DType::kFloat32, {3, 2}}));
    else
      EXPECT_EQ(array.info, (ArrayInfo{"k", DType::kInt64, {2}}));
  }
  EXPECT_THAT(values_of<float>(listing, "x"), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(values_of<std::int64_t>(listing, "k"), ElementsAre(2, 5));
}

TEST_P(ForeignFile, CutAnywhereItIsRefusedWithItsName) {
  const std::string whole = file_text(GetParam());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    try {
      list_text(whole.substr(0, size), GetParam());
      ADD_FAILURE() << "read though only " << size << " bytes of " << whole.size() << " are there";
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), HasSubstr(GetParam())) << size;
    }
  }
}

TEST_P(ForeignFile, WithAnyByteChangedItIsListedOrRefused) {
  const std::string whole = file_text(GetParam());
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const int change : {1, 0x80, 0xff}) {
      std::string text = whole;
      text[at] = static_cast<char>(text[at] ^ change);
      try {
        list_text(text, GetParam());
      } catch (const Error& error) {
        EXPECT_NE(error.code(), Code::kInternal) << at;
      }
    }
}

const std::string kBundle = "tests/tools/ckpt/foreign/tensorflow.index";

TEST(ArrayFile, ABundleOfTensorFlowHasItsVariableAndItsSlot) {
  const ArrayListing listing = list_bundle(TextBytes(file_text(kBundle)), kBundle);
  ASSERT_EQ(listing.arrays.size(), 2u);
  EXPECT_EQ(listing.arrays[0].info, (ArrayInfo{"dense/kernel", DType::kFloat32, {2, 3}}));
  EXPECT_EQ(listing.arrays[1].info, (ArrayInfo{"dense/kernel/Adagrad", DType::kFloat32, {2, 3}}));
  // The step took 0.1 / sqrt(0.1 + 1) of each element, which were 0 to 5.
  const auto values = values_of<float>(listing, "dense/kernel");
  ASSERT_EQ(values.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i)
    EXPECT_NEAR(values[i], static_cast<float>(i) - 0.0953463f, 1e-6f) << i;
}

TEST(ArrayFile, ABundlesIndexThatIsCutOrChangedAnywhereIsRefusedOrStillRight) {
  const std::string whole = file_text(kBundle);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    EXPECT_THROW(list_bundle(TextBytes(whole.substr(0, at)), kBundle), DataLossError) << at;
    std::string text = whole;
    text[at] = static_cast<char>(text[at] ^ 0x11);
    try {
      EXPECT_EQ(list_bundle(TextBytes(text), kBundle).arrays.size(), 2u) << at;
    } catch (const DataLossError&) {
    }
  }
}

TEST(ArrayFile, AnElementThatChangedInAnNpzIsFoundWhenItsArrayEnds) {
  const TempFolder folder;
  std::string text = file_text(kNumpy);
  const float five = 5;
  const std::size_t at = text.find(std::string(reinterpret_cast<const char*>(&five), 4));
  ASSERT_NE(at, std::string::npos);
  text[at] ^= 1;
  folder.write("changed.npz", text);
  const std::string path = folder.path() + "/changed.npz";
  const ArrayListing listing = list_text(text, path);
  EXPECT_THAT([&] { values_of<float>(listing, "x"); },
              testing::ThrowsMessage<DataLossError>(HasSubstr("\"x\" of " + path)));
}

TEST(ArrayFile, WhatAFormatCannotExpressIsRefusedByNameBeforeAFileIsMade) {
  const TempFolder folder;
  const std::string path = folder.path() + "/out.npz";
  EXPECT_THAT(
      [&] {
        ArrayWriter(path, ArrayFormat::kNpz,
                    {{"half", DType::kBfloat16, {2}},
                     {"twice", DType::kInt32, {}},
                     {"twice", DType::kInt32, {}}},
                    {});
      },
      testing::ThrowsMessage<InvalidArgumentError>(testing::AllOf(
          HasSubstr("\"half\" is of bfloat16"), HasSubstr("\"twice\" would be the name of two"))));
  EXPECT_EQ(folder.read("out.npz"), "");
}

TEST(ArrayFile, OneThatIsNotFinishedIsNoFile) {
  const TempFolder folder;
  { ArrayWriter out(folder.path() + "/a.npz", ArrayFormat::kNpz, {{"x", DType::kInt32, {9}}}, {}); }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace cairn::tools::ckpt
