// Where compiled kernels are kept between processes.
#include "core/kernels/cuda/trees/kernel_folder.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>

#include "core/base/error.h"

namespace cairn::cuda {
namespace {

namespace fs = std::filesystem;
using ::testing::Eq;
using ::testing::IsEmpty;
using ::testing::Optional;

struct KernelFolderTest : ::testing::Test {
  static fs::path new_folder() {
    std::string name = (fs::temp_directory_path() / "kernels-XXXXXX").string();
    CAIRN_CHECK(::mkdtemp(name.data()) != nullptr, "no folder ", name);
    return name;
  }
  ~KernelFolderTest() override { fs::remove_all(place); }
  std::vector<fs::path> files() const {
    return {fs::directory_iterator(place / "kernels"), fs::directory_iterator()};
  }
  void change_file(const std::string& bytes) const { std::ofstream(files().at(0)) << bytes; }

  const fs::path place = new_folder();
  // Made with its first kernel.
  const KernelFolder folder{place / "kernels"};
};

TEST_F(KernelFolderTest, FindsWhatWasKeptThereByItsWholeKey) {
  EXPECT_EQ(folder.find("a source"), std::nullopt);
  folder.keep("a source", std::string("\0its code", 9));
  folder.keep("another source", "");
  EXPECT_THAT(folder.find("a source"), Optional(std::string("\0its code", 9)));
  EXPECT_THAT(folder.find("another source"), Optional(Eq("")));
  EXPECT_EQ(folder.find("a source "), std::nullopt);
  EXPECT_EQ(files().size(), 2u) << "nothing but whole files stays";
}

TEST_F(KernelFolderTest, HasTheLastOfWhatWasKeptUnderOneKey) {
  folder.keep("a source", "its code");
  folder.keep("a source", "its code of today");
  EXPECT_THAT(folder.find("a source"), Optional(Eq("its code of today")));
}

TEST_F(KernelFolderTest, TakesADamagedFileForNone) {
  folder.keep("a source", "its code");
  std::ifstream file(files().at(0));
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  std::string changed = whole;
  changed.back() = 'E';
  for (const std::string& damaged :
       {changed, whole.substr(0, 70), whole.substr(0, 5), whole + "s", std::string()}) {
    change_file(damaged);
    EXPECT_EQ(folder.find("a source"), std::nullopt) << damaged;
  }
  folder.keep("a source", "its code");
  EXPECT_THAT(folder.find("a source"), Optional(Eq("its code")));
}

TEST_F(KernelFolderTest, IsAsGoodAsEmptyWhereItCannotBeWritten) {
  std::ofstream(place / "kernels") << "a file and no folder";
  folder.keep("a source", "its code");
  EXPECT_EQ(folder.find("a source"), std::nullopt);
}

TEST_F(KernelFolderTest, KeepsNothingWhereThereIsNoPlaceForIt) {
  const KernelFolder nowhere{fs::path()};
  nowhere.keep("a source", "its code");
  EXPECT_EQ(nowhere.find("a source"), std::nullopt);
}

// Sets a variable of the environment, and puts it back at the end.
class Told {
 public:
  Told(const char* name, const char* value) : name_(name) {
    if (const char* const old = std::getenv(name)) old_ = old;
    set(value);
  }
  ~Told() { set(old_ ? old_->c_str() : nullptr); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

 private:
  void set(const char* value) { value ? ::setenv(name_, value, 1) : ::unsetenv(name_); }
  const char* name_;
  std::optional<std::string> old_;
};

TEST(KernelFolderPlace, IsWhatTheEnvironmentNamesOrAmongTheCachesOfTheUser) {
  const Told home("HOME", "/home/someone"), no_caches("XDG_CACHE_HOME", nullptr),
      nothing("CAIRN_KERNEL_CACHE", nullptr);
  EXPECT_EQ(KernelFolder::of_environment(), "/home/someone/.cache/cairn/kernels");
  const Told caches("XDG_CACHE_HOME", "/caches");
  EXPECT_EQ(KernelFolder::of_environment(), "/caches/cairn/kernels");
  const Told folder("CAIRN_KERNEL_CACHE", "/some/folder");
  EXPECT_EQ(KernelFolder::of_environment(), "/some/folder");
  const Told none("CAIRN_KERNEL_CACHE", "none");
  EXPECT_THAT(KernelFolder::of_environment().string(), IsEmpty());
}

TEST(KernelFolderPlace, IsNowhereForAUserWithoutAHome) {
  const Told home("HOME", nullptr), caches("XDG_CACHE_HOME", nullptr),
      nothing("CAIRN_KERNEL_CACHE", nullptr);
  EXPECT_THAT(KernelFolder::of_environment().string(), IsEmpty());
}

}  // namespace
}  // namespace cairn::cuda
