// data_service.json: what consumers of a job are given, by data workers and processing mode.
#include <gmock/gmock.h>

#include "tests/service/simulated_service.h"
#include "tests/strategy/vector_cases.h"

namespace cairn::service {
namespace {

using Values = std::vector<std::int64_t>;
using ::testing::HasSubstr;

// A field that this test does not know may change the question, so that the test fails.
bool knows(const Json& test, const std::set<std::string>& known) {
  for (const auto& [name, value] : test.at("in").items())
    if (!known.contains(name)) {
      testing::fail_unknown(test, "\"" + name + "\"");
      return false;
    }
  return true;
}

Json sorted_json(const std::vector<Values>& elements) {
  std::vector<Values> sorted = elements;
  std::ranges::sort(sorted);
  return sorted;
}

Json sorted_json(Values values) {
  std::ranges::sort(values);
  return values;
}

// Which elements share a batch depends, where several workers are dealt splits, on which of them
// asked first; here a batch is consecutive elements (docs/differences.md).
void expect_batches(const Reading& reading, std::int64_t batch) {
  for (const Values& element : reading.elements) {
    EXPECT_LE(static_cast<std::int64_t>(element.size()), batch);
    EXPECT_TRUE(std::ranges::is_sorted(element));
  }
}

void one_consumer(const Json& test) {
  if (!knows(test, {"data_workers", "range", "batch", "processing_mode"})) return;
  const Json& in = test.at("in");
  const int workers = in.at("data_workers").get<int>();
  const std::int64_t batch = in.at("batch").get<std::int64_t>();
  const ProcessingMode mode = parse_processing_mode(in.at("processing_mode").get<std::string>());
  SimulatedService service({.workers = workers});
  const auto reading =
      service.read(Dataset::range(in.at("range").get<std::int64_t>()).batch(batch), mode);
  ASSERT_TRUE(service.finish({reading}));
  const Json& out = test.at("out");
  if (testing::refused(out)) {
    EXPECT_EQ(out.at("error"), "NotFoundError");
    EXPECT_THAT(reading->error, HasSubstr("NotFound: "));
    return;
  }
  EXPECT_EQ(reading->error, "");
  const Json& ok = out.at("ok");
  ASSERT_EQ(ok.size(), 2u);
  EXPECT_EQ(sorted_json(reading->values()), ok.at("values_sorted"));
  if (mode == ProcessingMode::kDynamic && workers > 1)
    expect_batches(*reading, batch);
  else
    EXPECT_EQ(sorted_json(reading->elements), ok.at("elements_sorted"));
}

void shared_job(const Json& test) {
  if (!knows(test, {"data_workers", "consumers", "range", "processing_mode", "text"})) return;
  const Json& in = test.at("in");
  SimulatedService service({.workers = in.at("data_workers").get<int>()});
  const Dataset dataset = Dataset::range(in.at("range").get<std::int64_t>()).batch(1);
  const ProcessingMode mode = parse_processing_mode(in.at("processing_mode").get<std::string>());
  std::vector<std::shared_ptr<Reading>> readings;
  for (int i = 0; i < in.at("consumers").get<int>(); ++i)
    readings.push_back(service.read(dataset, mode, "shared"));
  ASSERT_TRUE(service.finish(readings));
  Values all;
  for (const auto& reading : readings) {
    EXPECT_EQ(reading->error, "");
    const Values values = reading->values();
    all.insert(all.end(), values.begin(), values.end());
  }
  const Json& ok = test.at("out").at("ok");
  ASSERT_EQ(ok.size(), 1u);
  EXPECT_EQ(sorted_json(all), ok.at("all_values_sorted"));
}

TEST(DataServiceVectors, ConsumersAreGivenWhatTheReferenceGives) {
  testing::run_cases("data_service", {{"one_consumer", one_consumer}, {"shared_job", shared_job}});
}

}  // namespace
}  // namespace cairn::service
