#include "core/kernels/cuda/library.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

namespace cairn {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// A folder as Linux lists the devices of the PCI bus.
class GpusOnTheBus : public ::testing::Test {
 protected:
  GpusOnTheBus() {
    char made[] = "/tmp/cairn-bus-XXXXXX";
    folder = ::mkdtemp(made);
  }
  ~GpusOnTheBus() override { std::filesystem::remove_all(folder); }
  void add(const std::string& place, const char* vendor, const char* what) const {
    std::filesystem::create_directory(folder + "/" + place);
    std::ofstream(folder + "/" + place + "/vendor") << vendor << "\n";
    std::ofstream(folder + "/" + place + "/class") << what << "\n";
  }
  std::string folder;
};

TEST_F(GpusOnTheBus, AreTheDisplaysAndAcceleratorsOfNvidia) {
  add("0000:3b:00.0", "0x10de", "0x030200");  // a 3D controller, as those in servers are
  add("0000:1b:00.0", "0x10de", "0x030000");  // a VGA controller
  add("0000:1b:00.1", "0x10de", "0x040300");  // the sound of the one above
  add("0000:00:02.0", "0x8086", "0x030000");  // of another maker
  EXPECT_THAT(gpus_on_bus(folder), ElementsAre("0000:1b:00.0", "0000:3b:00.0"));
}

TEST_F(GpusOnTheBus, AreNoneWhereTheBusIsEmptyOrNotListed) {
  EXPECT_THAT(gpus_on_bus(folder), IsEmpty());
  EXPECT_THAT(gpus_on_bus(folder + "/missing"), IsEmpty());
}

}  // namespace
}  // namespace cairn
