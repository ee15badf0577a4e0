// The candidates of a trained retrieval model, from rows and from what the export wrote, and the
// best of them for rows of a request.
#include <algorithm>
#include <cstring>

#include "core/base/error.h"
#include "model/saved/loaded_model.h"
#include "serving/model/served_model.h"
#include "serving/raw/raw_rows.h"
#include "serving/server/version_candidates.h"
#include "tests/tools/job_run.h"
#include "tools/ckpt/format/array_file.h"
#include "tools/export/export_candidates.h"
#include "tools/export/read_candidates.h"

namespace cairn::tools {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Users of a taste see films of it: of 30 films, three belong to each taste. The films are numbers
// or texts.
class Films : public ::testing::TestWithParam<bool> {
 protected:
  Films() {
    std::string rows = "user,age,film,length\n";
    Draws draws(5);
    for (int i = 0; i < 1500; ++i) {
      const int user = draws.below(40);
      rows += row(user, user % 10 * 3 + draws.below(3));
    }
    run_.folder.write("a.csv", rows);
    run_.folder.write(
        "job.toml",
        str("[data]\ntrain = 'a.csv'\nbatch = 50\nepochs = 20\nshuffle = 500\n"
            "candidate = 'film'\n[data.csv]\nheader = true\ncolumns = ['user', 'age:float32', '",
            is_text() ? "film" : "film:int64",
            "', 'length:float32']\n[features]\nvocabulary = ['user', 'film']\n"
            "numeric = ['age', 'length']\n[model]\nobjective = 'retrieval'\n"
            "query = ['user', 'age']\ncandidate = ['film', 'length']\nhidden = [16]\n"
            "[optimizer]\nkind = 'adagrad'\nlearning_rate = 0.3\n"));
    EXPECT_EQ(run_.cairn({"train", run_.path("job.toml"), "--strategy", "one_device", "--dir",
                          run_.path("run")}),
              0)
        << run_.output();
  }
  static bool is_text() { return GetParam(); }
  static std::string row(int user, int film) {
    return str("u", user, ",", 20 + user, ",", is_text() ? "film_" : "", film, ",", 80 + film % 3,
               "\n");
  }
  std::string model() const { return run_.path("run/model"); }
  CandidateFiles files() const { return {.model = model(), .files = {run_.path("a.csv")}}; }
  // The index of a server that reads this file.
  std::shared_ptr<const serving::CandidateIndex> index(const std::string& file) const {
    const auto served = serving::ServedModel::load(model());
    return serving::make_candidates("films", *served,
                                    read_candidates(served->about(), run_.path(file)), {}, 1)
        .index;
  }

  JobRun run_;
};

void expect_same(const Tensor& got, const Tensor& wanted) {
  ASSERT_EQ(got.type(), wanted.type());
  if (got.dtype() == DType::kString)
    EXPECT_TRUE(std::ranges::equal(got.string_values(), wanted.string_values()));
  else
    EXPECT_EQ(std::memcmp(got.raw(), wanted.raw(), got.bytes()), 0);
}

TEST_P(Films, AreThoseOfTheExport) {
  const auto read = index("a.csv");
  export_candidates({.from = files(), .out = run_.path("films.npz")});
  const auto exported = index("films.npz");

  EXPECT_EQ(read->size(), 30);
  EXPECT_EQ(read->ids().dtype(), is_text() ? DType::kString : DType::kInt64);
  expect_same(exported->ids(), read->ids());
  // Scores have the bits of vectors.
  const auto queries = Tensor::of<float>({1, read->width()}, std::vector<float>(16, 1));
  const auto a = read->top(queries, 30)[0], b = exported->top(queries, 30)[0];
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].place, b[i].place);
    EXPECT_EQ(a[i].score, b[i].score);
  }
}

TEST_P(Films, ComeWithASampleOfTheQueriesInTheirRows) {
  const auto data = read_candidates(read_saved_model(model()), run_.path("a.csv"));
  const std::int64_t sampled = data.queries.at("user").shape()[0];
  EXPECT_TRUE(sampled >= 750 && sampled <= 1500) << sampled << " of 1500";
  EXPECT_EQ(data.columns.at("film").shape()[0], 30);
}

TEST_P(Films, OfAUsersTasteAreTheBestForARow) {
  const auto films = this->index("a.csv");
  LoadedModel model = LoadedModel::load(this->model());
  serving::RawRows rows(model.about());
  const auto place_of = [&](int film) {
    return is_text() ? films->find(str("film_", film)) : films->find(std::int64_t{film});
  };
  std::string body = "user,age,film,length\n";
  for (int user = 0; user < 40; ++user) body += row(user, 29);  // any film: it is not the query's
  const auto& outputs = model.about().outputs;
  const auto query = std::ranges::find(outputs, "query", &ColumnSpec::name) - outputs.begin();
  const Tensor queries = model.predict(rows.read(body, serving::RawForm::kText).columns)
                             .at(static_cast<std::size_t>(query));

  const auto best = films->top(queries, 3);

  int right = 0;
  for (int user = 0; user < 40; ++user)
    for (int film = user % 10 * 3; film < user % 10 * 3 + 3; ++film)
      right += static_cast<int>(std::ranges::count(best[static_cast<std::size_t>(user)],
                                                   place_of(film), &serving::ScoredPlace::place));
  EXPECT_GT(right, 108) << "of 120; by chance it is 12";
}

INSTANTIATE_TEST_SUITE_P(ByName, Films, ::testing::Bool(),
                         [](const auto& is_text) { return is_text.param ? "Text" : "Number"; });

std::string refusal_of(const std::string& path) {
  try {
    read_candidates({}, path);
  } catch (const Error& error) {
    return str(code_name(error.code()), ": ", error.what());
  }
  return "no error";
}

TEST(ReadCandidates, RefusesAnNpzOfSomethingElse) {
  const TempFolder folder;
  const std::string path = folder.path() + "/a.npz";
  const auto write = [&](const std::vector<ckpt::ArrayInfo>& infos,
                         const std::vector<std::int64_t>& numbers) {
    std::filesystem::remove(path);
    ckpt::ArrayWriter writer(path, ckpt::ArrayFormat::kNpz, infos, {});
    for (std::size_t i = 0; i < infos.size(); ++i)
      writer.append(i, reinterpret_cast<const std::byte*>(numbers.data()),
                    static_cast<std::size_t>(infos[i].bytes()));
    writer.finish();
  };
  const ckpt::ArrayInfo vectors{"vectors", DType::kFloat32, {2, 1}};
  const ckpt::ArrayInfo text{"text", DType::kUint8, {3}}, ends{"text_ends", DType::kInt64, {2}};
  write({{"ids", DType::kInt64, {2}}, vectors}, {1, 2});
  EXPECT_EQ(refusal_of(path), "no error");
  write({vectors}, {1, 2});
  EXPECT_THAT(refusal_of(path), AllOf(HasSubstr("InvalidArgument"), HasSubstr(path),
                                      HasSubstr("has no array \"ids\"")));
  write({{"ids", DType::kFloat32, {2}}, vectors}, {1, 2});
  EXPECT_THAT(refusal_of(path), HasSubstr("\"ids\" is no int64 of rank 1"));
  write({{"ids", DType::kInt64, {2}}, {"vectors", DType::kFloat32, {2}}}, {1, 2});
  EXPECT_THAT(refusal_of(path), HasSubstr("\"vectors\" is no float32 of rank 2"));
  write({text, ends, vectors}, {2, 3});
  EXPECT_EQ(refusal_of(path), "no error");
  for (const std::vector<std::int64_t>& wrong :
       {std::vector<std::int64_t>{2, 1}, std::vector<std::int64_t>{1, 4},
        std::vector<std::int64_t>{-1, 3}, std::vector<std::int64_t>{INT64_MAX, 3}}) {
    write({text, ends, vectors}, wrong);
    EXPECT_THAT(refusal_of(path), HasSubstr("\"text_ends\" has"));
  }
  folder.write("a.npz", "PK");
  EXPECT_THAT(refusal_of(path), HasSubstr("DataLoss"));
}

}  // namespace
}  // namespace cairn::tools
