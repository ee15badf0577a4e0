#include "tools/job/train/given_cluster.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>

#include "core/base/json.h"
#include "tests/tools/temp_folder.h"
#include "tools/launch/run_folder.h"

namespace cairn::tools {
namespace {

class GivenClusterTest : public testing::Test {
 protected:
  GivenClusterTest() : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder_.path());
  }
  ~GivenClusterTest() override {
    ::unsetenv("CAIRN_RUN_DIR");
    std::filesystem::current_path(before_);
  }
  Json description(const std::string& run) const {
    return parse_json(folder_.read(run + "/cluster.json"), "cluster.json");
  }

  TempFolder folder_;
  std::filesystem::path before_;
  ClusterSpec tasks_{{"ps", {"b:1", "c:2"}}, {"worker", {"d:3"}}, {"chief", {"a:4"}}};
};

TEST_F(GivenClusterTest, ARunHasAFolderBelowRunsWhichSaysWhereItsChiefIsWhileItLasts) {
  std::string name;
  {
    const GivenClusterRun run("", {tasks_, "mine", "token"});
    name = "runs/" + run.dir().substr(run.dir().rfind('/') + 1);
    EXPECT_EQ(newest_run([](const std::string&) { return true; }), name);
    const Json said = description(name);
    EXPECT_TRUE(said["running"]);
    EXPECT_EQ(said["cluster_id"], "mine");
    EXPECT_EQ(said["token_file"], std::filesystem::absolute("token").string());
    EXPECT_EQ(said["tasks"].size(), 4u);
    EXPECT_EQ(said["tasks"][0], (Json{{"role", "chief"}, {"index", 0}, {"address", "a:4"}}));
  }
  EXPECT_FALSE(description(name)["running"]);
}

TEST_F(GivenClusterTest, BelowCairnUpItIsThatRunsFolderAndItsDescriptionStays) {
  folder_.script("cluster.json", "by cairn up");
  const std::string before = folder_.read("cluster.json");
  ::setenv("CAIRN_RUN_DIR", folder_.path().c_str(), 1);
  {
    const GivenClusterRun run("", {tasks_, "", ""});
    EXPECT_EQ(run.dir(), folder_.path());
  }
  EXPECT_EQ(folder_.read("cluster.json"), before);
  EXPECT_FALSE(std::filesystem::exists("runs"));
}

}  // namespace
}  // namespace cairn::tools
