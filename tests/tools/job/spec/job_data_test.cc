// [data] and [features] of a job file: which files, which columns, and what becomes of them.
#include "tools/job/spec/job_data.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <map>

#include "data/dataset/dataset_iterator.h"
#include "data/feature/hash.h"
#include "data/file/tfrecord_writer.h"
#include "tests/tools/job_fixture.h"
#include "tools/job/parts/job_model.h"
#include "tools/job/spec/job.h"
#include "tools/job/spec/job_format.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JobDataTest : public JobFixture {
 protected:
  // All examples of the training data as one batch.
  struct Made {
    FittedFeatures features;
    ElementSpec spec;
    Element all;
    template <typename T>
    std::vector<T> of(const std::string& name) const {
      const auto values = all[spec.find(name)].values<T>();
      return {values.begin(), values.end()};
    }
  };
  Made made(const std::string& text) const {
    const Job read = job(text);
    FittedFeatures features = fit_features(read);
    const Dataset data = train_source(read, features);
    return {features, data.element_spec(), *open(data.batch(100))->next()};
  }
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }
};

constexpr const char* kXy =
    "[data.csv]\ncolumns = ['x:float32', 'y:float32']\nlabel = {column = "
    "'y'}\n[features]\nnumeric = 'x'\n";

// ---- files ----

TEST_F(JobDataTest, APatternMeansItsFilesInTheOrderOfTheirNames) {
  for (const char* name : {"part-2.csv", "part-1.csv", "other.csv"}) folder_.write(name, "1,0\n");
  const Job read = job(std::string("[data]\ntrain = ['part-*.csv', 'other.csv']\n") + kXy);
  EXPECT_THAT(read.data.train,
              ElementsAre(path("part-1.csv"), path("part-2.csv"), path("other.csv")));
  EXPECT_EQ(fit_features(read).examples, 3);
}

TEST_F(JobDataTest, TheNameOfTheJobsFolderIsNoPartOfAPattern) {
  std::filesystem::create_directory(path("run[1]"));
  folder_.write("run[1]/part-1.csv", "1,0\n");
  const Job read =
      parse_job(std::string("[data]\ntrain = 'part-*.csv'\n") + kXy, path("run[1]/some.toml"));
  EXPECT_THAT(read.data.train, ElementsAre(path("run[1]/part-1.csv")));
}

TEST_F(JobDataTest, APatternWithoutFilesIsAnErrorThatNamesIt) {
  EXPECT_THAT(error_of(std::string("[data]\ntrain = 'part-*.csv'\n") + kXy),
              AllOf(HasSubstr("some.toml:2: data.train: there is no file \"part-*.csv\""),
                    HasSubstr(folder_.path())));
}

TEST_F(JobDataTest, AFileWhoseNameHoldsAStarIsNoPattern) {
  folder_.write("a*.csv", "1,0\n");
  folder_.write("ab.csv", "1,0\n");
  EXPECT_THAT(job(std::string("[data]\ntrain = 'a*.csv'\n") + kXy).data.train,
              ElementsAre(path("a*.csv")));
}

// ---- columns ----

TEST_F(JobDataTest, AFeatureOfNoColumnIsToldWithItsKeyAndTheNearestColumn) {
  folder_.write("a.csv", "1,2,0\n");
  const std::string data =
      "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['age:float32', 'size:float32', "
      "'y:float32']\nlabel = {column = 'y'}\n";
  EXPECT_THAT(error_of(data + "[features]\nnumeric = ['size', 'agee']\n"),
              HasSubstr("features.numeric names \"agee\", which is no column of the data; did you "
                        "mean \"age\"?"));
  EXPECT_THAT(error_of(data + "[features.ids]\nids = [3]\n"),
              HasSubstr("features.ids names \"ids\", which is no column of the data"));
  const std::string crossed =
      data + "[features.bucketised]\nage = [30]\nsize = [2]\n[[features.crosses]]\nbuckets = 10\n";
  EXPECT_EQ(error_of(crossed + "columns = ['age_bucket', 'size_bucket']\n"), "it was taken");
  EXPECT_THAT(error_of(crossed + "columns = ['age_bucket', 'size_buckets']\n"),
              HasSubstr("features.crosses names \"size_buckets\""));
}

// ---- formats ----

TEST_F(JobDataTest, TheFormatFollowsFromTheEndingOrTheTableUnlessItIsSaid) {
  const auto format = [&](const std::string& text) { return job("[data]\n" + text).data.format; };
  EXPECT_EQ(format("train = 'a.tfrecord.gz'"), "tfrecords");
  EXPECT_EQ(format("train = 'a.libsvm'\n[data.libsvm]\ndimension = 9"), "libsvm");
  EXPECT_EQ(format("train = 'a.gz'\n[data.libsvm]\ndimension = 9"), "libsvm");
  EXPECT_EQ(format("train = 'a.txt'"), "csv");
  EXPECT_EQ(format("train = 'a.csv'\nformat = 'text'"), "text");
  EXPECT_EQ(job("[data]\ntrain = 'a.tsv'").data.form().cells()->delimiter, '\t');
}

TEST_F(JobDataTest, AFormatThatIsNotThereIsToldTheNearest) {
  EXPECT_THAT(error_of("[data]\ntrain = 'a'\nformat = 'libsvn'"),
              AllOf(HasSubstr("\"libsvn\""), HasSubstr("\"libsvm\"?")));
}

TEST_F(JobDataTest, TheTableOfAnotherFormatIsRefused) {
  EXPECT_THAT(error_of("[data]\ntrain = 'a.csv'\n[data.libsvm]\ndimension = 9"),
              HasSubstr("some.toml:3: data.libsvm is not read with data.format = \"csv\""));
  EXPECT_THAT(error_of("[data]\ntrain = 'a.svm'\n[data.libsvm]\ndimension = 9\n[features]\n"
                       "numeric = 'ids'"),
              HasSubstr("features.numeric is not read"));
}

TEST_F(JobDataTest, UnknownKeysOfNewTablesAreToldTheNearest) {
  const std::pair<const char*, const char*> cases[] = {
      {"[data.libsvm]\ndimensions = 9", "\"data.libsvm.dimensions\"; did you mean \"dimension\"?"},
      {"[data.tfrecords]\nfeature = 'x:int64'",
       "\"data.tfrecords.feature\"; did you mean \"features\"?"},
      {"[data.text]\nseperator = ' '", "\"data.text.seperator\"; did you mean \"separator\"?"},
      {"[data.csv]\ncolumns = [{name = 'x', unknwon = 'NA'}]",
       "\"data.csv.columns.unknwon\"; did you mean \"unknown\"?"},
      {"[features.text]\nx = {bucket = 9}",
       "\"features.text.x.bucket\"; did you mean \"buckets\"?"}};
  for (const auto& [table, said] : cases)
    EXPECT_THAT(error_of(std::string("[data]\ntrain = 'a'\n") + table), HasSubstr(said)) << table;
}

TEST_F(JobDataTest, LibsvmIsOneBagOfIdsWithValues) {
  folder_.write("a.svm", "+1 1:0.5 4:2\n-1 2:1 # comment\n");
  const Made data = made(
      "[data]\ntrain = 'a.svm'\n[data.libsvm]\ndimension = 4\n"
      "label = {positive = '+1', negative = '-1'}");
  ASSERT_EQ(data.features.ids.size(), 1u);
  EXPECT_TRUE(data.features.ids[0].bags);
  EXPECT_EQ(data.features.ids[0].rows, 4);
  EXPECT_EQ(data.features.ids[0].weights, "values");
  EXPECT_THAT(data.of<std::int64_t>("ids"), ElementsAre(0, 3, 1));
  EXPECT_THAT(data.of<float>("values"), ElementsAre(0.5f, 2, 1));
  EXPECT_THAT(data.of<float>("label"), ElementsAre(1, 0));
}

TEST_F(JobDataTest, LibsvmWithoutADimensionIsAnError) {
  EXPECT_THAT(error_of("[data]\ntrain = 'a.svm'\n"), HasSubstr("data.libsvm.dimension is not"));
}

TEST_F(JobDataTest, TfRecordsAreColumnsThatFeaturesNameLikeThoseOfCsv) {
  TfRecordWriter file(path("a.tfrecord"));
  file.write(ExampleMessage()
                 .integers("y", {1})
                 .integers("areas", {5, 6, 5})
                 .floats("x", {1, 2})
                 .texts("word", {"red"})
                 .bytes());
  file.write(ExampleMessage().integers("y", {0}).floats("x", {3, 4}).bytes());
  file.finish();
  const Made data = made(
      "[data]\ntrain = 'a.tfrecord'\n[data.tfrecords]\nfeatures = ['y:int64', 'areas:int64[]', "
      "'x:float32[2]', {name = 'word', dtype = 'string', default = 'none'}]\nlabel = 'y'\n"
      "[features]\nplain = 'x'\nvocabulary = 'word'\nids = {areas = 10}");
  EXPECT_THAT(data.of<std::int64_t>("areas"), ElementsAre(5, 6, 5));
  EXPECT_THAT(data.of<std::int64_t>("areas/row_splits"), ElementsAre(0, 3, 3));
  EXPECT_THAT(data.of<float>("x"), ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(data.of<std::int64_t>("word"), ElementsAre(2, 1));
  EXPECT_EQ(data.features.examples, 2);
}

TEST_F(JobDataTest, TextIsALabelAndTheRestOfTheLine) {
  folder_.write("a.txt", "spam\tWIN a\tprize\nham\tSee you \"soon\n");
  const Made data = made(
      "[data]\ntrain = 'a.txt'\nformat = 'text'\n[data.text]\nlabel = {positive = 'spam', "
      "negative = 'ham'}\n[features]\ntext = {text = 1000}");
  EXPECT_THAT(data.of<float>("label"), ElementsAre(1, 0));
  const auto id = [](const char* word) { return hash_bucket(text_hash(word), 1000); };
  EXPECT_THAT(data.of<std::int64_t>("text"),
              ElementsAre(id("win"), id("a"), id("prize"), id("see"), id("you"), id("soon")));
  EXPECT_THAT(data.of<std::int64_t>("text/row_splits"), ElementsAre(0, 3, 6));
}

TEST_F(JobDataTest, CriteoHasItsColumns) {
  std::string line = "1";
  for (int i = 0; i < 13; ++i) line += i == 1 ? "\t" : "\t3";
  for (int i = 0; i < 26; ++i) line += "\t0000000a";
  folder_.write("a.txt", line + "\n");
  const Made data = made(
      "[data]\ntrain = 'a.txt'\nformat = 'criteo'\n[features]\nlog1p = ['I1', 'I2']\nhashed = {C1 "
      "= 100}");
  EXPECT_THAT(data.of<float>("label"), ElementsAre(1));
  EXPECT_EQ(data.of<std::int64_t>("C1").front(), hash_bucket(text_hash("0000000a"), 100));
}

// ---- validation, weights, visitation ----

constexpr const char* kUsers =
    "[data.csv]\ncolumns = ['user', 'id:int64', 'y:float32', 'w:float32']\nlabel = {column = 'y'}\n"
    "[features]\nplain = 'id'\n";

class Split : public JobDataTest {
 protected:
  // Ten rows of each of a thousand users, whose number is the id.
  Split() {
    std::string rows;
    for (int i = 0; i < 10'000; ++i)
      rows += "user" + std::to_string(i % 1000) + "," + std::to_string(i % 1000) + ",1,2\n";
    folder_.write("a.csv", rows);
  }
  // How many rows of each user there are.
  static std::map<std::int64_t, int> users_of(const Dataset& data) {
    std::map<std::int64_t, int> users;
    const auto all = open(data.batch(20'000))->next();
    for (const std::int64_t id : (*all)[data.element_spec().find("id")].values<std::int64_t>())
      ++users[id];
    return users;
  }
};

TEST_F(Split, HoldsBackAShareOfTheValuesWithAllOfTheirExamples) {
  for (const char* column : {"user", "id"}) {
    const Job read = job(std::string("[data]\ntrain = 'a.csv'\n[validation]\nsplit_by = '") +
                         column + "'\nshare = 0.2\n" + kUsers);
    const FittedFeatures features = fit_features(read);
    const auto trained = users_of(train_source(read, features));
    const auto evaluated = eval_sources(read, features);
    ASSERT_EQ(evaluated.size(), 1u);
    EXPECT_EQ(evaluated[0].name, "validation");
    const auto held_back = users_of(evaluated[0].data);
    EXPECT_NEAR(static_cast<double>(held_back.size()), 200, 40) << column;
    EXPECT_EQ(trained.size() + held_back.size(), 1000u);
    EXPECT_EQ(features.examples, static_cast<std::int64_t>(10 * trained.size()));
    for (const auto& [user, rows] : held_back) {
      EXPECT_EQ(rows, 10);
      EXPECT_FALSE(trained.contains(user));
    }
  }
}

TEST_F(Split, ByAColumnOfRealNumbersIsRefused) {
  EXPECT_THAT(
      error_of(std::string("[data]\ntrain = 'a.csv'\n[validation]\nsplit_by = 'w'\n") + kUsers),
      AllOf(HasSubstr("validation.split_by: "), HasSubstr("\"w\" is float32")));
}

TEST_F(JobDataTest, ValidationIsFilesOrAShareOfTheTrainingData) {
  const std::string data = "[data]\ntrain = 'a.csv'\n[validation]\n";
  EXPECT_THAT(error_of(data + "files = 'b.csv'\nsplit_by = 'x'\n" + kXy),
              HasSubstr("give one of them"));
  EXPECT_THAT(error_of(data + "files = 'b.csv'\nshare = 0.5\n" + kXy),
              HasSubstr("validation.split_by, which is not given"));
  EXPECT_THAT(error_of(data + "split_by = 'x'\nshare = 1.0\n" + kXy),
              HasSubstr("some.toml:5: validation.share is 1"));
  EXPECT_THAT(error_of(data + "file = 'b.csv'\n" + kXy), HasSubstr("did you mean \"files\"?"));
}

TEST_F(JobDataTest, ValidationDataIsJudgedBeforeTestData) {
  for (const char* name : {"a.csv", "b.csv", "c.csv"}) folder_.write(name, "1,0\n");
  const Job read = job(std::string("[data]\ntrain = 'a.csv'\ntest = 'c.csv'\n[validation]\nfiles "
                                   "= 'b.csv'\n") +
                       kXy);
  const auto evaluated = eval_sources(read, fit_features(read));
  ASSERT_EQ(evaluated.size(), 2u);
  EXPECT_EQ(evaluated[0].key, "validation.files");
  EXPECT_EQ(evaluated[1].key, "data.test");
}

TEST_F(JobDataTest, WeightsAreAColumnThatIsNoFeature) {
  folder_.write("a.csv", "1,2,0,7\n");
  const std::string data = "[data]\ntrain = 'a.csv'\nweight = '";
  const std::string columns =
      "[data.csv]\ncolumns = ['x:float32', 'w:int64', 'y:float32', 't']\nlabel = {column = 'y'}\n"
      "[features]\nnumeric = 'x'\n";
  const Made weighted = made(data + "w'\n" + columns);
  EXPECT_EQ(weighted.features.weight, "w");
  EXPECT_THAT(weighted.of<std::int64_t>("w"), ElementsAre(2));
  EXPECT_THAT(error_of(data + "x'\n" + columns),
              AllOf(HasSubstr("features.numeric"), HasSubstr("as the weight")));
  EXPECT_THAT(error_of(data + "y'\n" + columns), HasSubstr("which is the label"));
  EXPECT_THAT(error_of(data + "t'\n" + columns), HasSubstr("data.weight: \"t\" is string"));
}

TEST_F(JobDataTest, AVisitationThatIsNotThereIsToldTheNearest) {
  EXPECT_THAT(error_of("[data]\ntrain = 'a'\nvisitation = 'exactly_one'"),
              HasSubstr("did you mean \"exactly_once\"?"));
}

// ---- columns ----

TEST_F(JobDataTest, ACellOfSeveralIdsIsABag) {
  folder_.write("a.csv", "1,3|7,a b\n0,,c\n");
  const Made data = made(
      "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['y:float32', 'areas:int64[]', {name = "
      "'tags', dtype = 'string[]', separator = ' '}]\nlabel = {column = 'y'}\n"
      "[features]\nids = {areas = 10}\nvocabulary = 'tags'");
  EXPECT_THAT(data.of<std::int64_t>("areas"), ElementsAre(3, 7));
  EXPECT_THAT(data.of<std::int64_t>("areas/row_splits"), ElementsAre(0, 2, 2));
  EXPECT_THAT(data.of<std::int64_t>("tags/row_splits"), ElementsAre(0, 2, 3));
  for (const IdFeature& id : data.features.ids) EXPECT_TRUE(id.bags) << id.name;
}

TEST_F(JobDataTest, ABadNumberInABagIsToldWithItsPlace) {
  folder_.write("a.csv", "1,3|7\n0,4|x|5\n");
  EXPECT_THAT(
      error_of("[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['y:float32', "
               "'areas:int64[]']\nlabel = {column = 'y'}\n[features]\nids = {areas = 10}"),
      HasSubstr("a.csv:2:3: column \"areas\": \"x\" is not of type int64 (in the cell \"4|x|5\")"));
}

TEST_F(JobDataTest, UnknownCellsHaveDefaultsAndIndicators) {
  folder_.write("a.csv", "1,5,red\n0,NA,?\n1,-,blue\n0,,red\n");
  const Made data = made(
      "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['y:float32', {name = 'x', dtype = "
      "'float32', unknown = ['NA', '-'], indicator = true}, {name = 'c', default = 'none'}]\n"
      "unknown = '?'\nlabel = {column = 'y'}\n[features]\nplain = 'x'\nvocabulary = 'c'");
  EXPECT_THAT(data.of<float>("x"), ElementsAre(5, 0, 0, 0));
  EXPECT_THAT(data.of<float>("numeric"), ElementsAre(0, 1, 1, 1)) << "the indicator";
  EXPECT_THAT(data.of<std::int64_t>("c"), ElementsAre(1, 3, 2, 1));
}

TEST_F(JobDataTest, TextsUnknownToAllColumnsMayBeSeveral) {
  folder_.write("a.csv", "1,NA\n0,?\n");
  const Made data = made(
      "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['y:float32', {name = 'x', dtype = "
      "'float32', default = 7}]\nunknown = ['?', 'NA']\nlabel = {column = 'y'}\n[features]\n"
      "plain = 'x'");
  EXPECT_THAT(data.of<float>("x"), ElementsAre(7, 7));
}

TEST_F(JobDataTest, WordsAndCharactersOfATextAreOneBag) {
  folder_.write("a.csv", "1,Go NOW\n");
  const Made data = made(
      "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = ['y:float32', 't']\nlabel = {column = 'y'}\n"
      "[features.text]\nt = {buckets = 100000, words = 2, characters = 4}");
  const auto bucket = [](std::uint64_t hash) { return hash_bucket(hash, 100'000); };
  const std::uint64_t go = text_hash("go"), now = text_hash("now");
  EXPECT_THAT(data.of<std::int64_t>("t"),
              ElementsAre(bucket(go), bucket(now), bucket(cross_hash(go, now)),
                          bucket(cross_hash(0x63, text_hash("<go>"))),
                          bucket(cross_hash(0x63, text_hash("<now"))),
                          bucket(cross_hash(0x63, text_hash("now>")))));
  EXPECT_EQ(data.features.ids[0].rows, 100'000);
}

TEST_F(JobDataTest, NumbersOfATextOutOfRangeAreNamedWithTheirLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"x = 0", "some.toml:4: features.text.x is 0"},
      {"x = {buckets = 9, words = 17}", "features.text.x.words is 17"},
      {"x = {buckets = 9, words = 0}", "features.text.x.characters is 0"},
      {"x = {buckets = 9, characters = [3, 2]}", "features.text.x.characters is 2"},
      {"x = {buckets = 9, characters = [1, 2, 3]}",
       "some.toml:4: features.text.x.characters must be a number of characters"}};
  for (const auto& [text, said] : cases)
    EXPECT_THAT(error_of(std::string("[data]\ntrain = 'a'\n[features.text]\n") + text),
                HasSubstr(said))
        << text;
}

TEST_F(JobDataTest, ALabelOfARecordOutsideZeroAndOneIsABadOne) {
  TfRecordWriter file(path("a.tfrecord"));
  file.write(ExampleMessage().integers("y", {2}).integers("x", {1}).bytes());
  file.finish();
  EXPECT_THAT(error_of("[data]\ntrain = 'a.tfrecord'\n[data.tfrecords]\nfeatures = ['y:int64', "
                       "'x:int64']\nlabel = 'y'\n[features]\nids = {x = 2}"),
              AllOf(HasSubstr("a.tfrecord"), HasSubstr("must lie in [0, 1]")));
}

TEST_F(JobDataTest, ADefaultIsTheNumberThatIsWritten) {
  folder_.write("a.csv", "?,0\n");
  const Made data = made(
      "[data]\ntrain = 'a.csv'\n[data.csv]\ncolumns = [{name = 'x', dtype = 'float32', unknown = "
      "'?', default = 1234567.5}, 'y:float32']\nlabel = {column = 'y'}\n[features]\n"
      "plain = 'x'\n");
  EXPECT_THAT(data.of<float>("x"), ElementsAre(1234567.5f));
}

}  // namespace
}  // namespace cairn::tools
