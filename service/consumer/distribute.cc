#include "service/consumer/distribute.h"

#include <cstdlib>

#include "rpc/server/token.h"
#include "service/consumer/consumers.h"
#include "service/dispatcher/round_book.h"

namespace cairn::service {
namespace {

std::string environment(const char* name, std::string otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? std::string(value) : std::move(otherwise);
}

OpenElements open_here(std::string token) {
  ConsumersOptions options;
  options.cluster = environment("CAIRN_CLUSTER_ID", options.cluster);
  options.token = token.empty() ? rpc::token_of_environment() : std::move(token);
  options.transport = rpc::parse_transport(environment("CAIRN_TRANSPORT", "auto"));
  auto consumers = std::make_shared<Consumers>(std::move(options));
  // Elements keep the consumers, which the description alone would take along as it goes.
  struct Kept {
    std::shared_ptr<Consumers> consumers;
    std::shared_ptr<ElementSource> elements;
  };
  return [consumers](const Dataset& dataset, const ServiceSource& source) {
    auto kept = std::make_shared<Kept>(Kept{consumers, consumers->opener()(dataset, source)});
    return std::shared_ptr<ElementSource>(kept, kept->elements.get());
  };
}

rpc::Address address_of(const std::string& given) {
  const std::string text = given.empty() ? environment("CAIRN_DATA_SERVICE", "") : given;
  if (text.empty())
    throw InvalidArgumentError(
        "distribute: no dispatcher: give its address, or start the program under `cairn up "
        "--data-workers N`, which sets CAIRN_DATA_SERVICE");
  return rpc::Address::parse(text);
}

}  // namespace

Dataset distribute(const Dataset& dataset, DistributeOptions options) {
  ServiceSource source;
  source.dispatcher = address_of(options.dispatcher).str();
  source.job_name = std::move(options.job_name);
  source.cluster = std::move(options.cluster);
  source.mode = static_cast<std::uint8_t>(options.mode);
  source.compression = static_cast<std::uint8_t>(options.compression);
  source.buffer_elements = options.buffer_elements;
  verify_group(options.num_consumers, options.consumer_index, source.job_name);
  source.num_consumers = static_cast<std::uint16_t>(options.num_consumers);
  source.consumer_index = static_cast<std::uint16_t>(options.consumer_index);
  if (source.job_name.starts_with('#'))
    throw InvalidArgumentError(str("a job's name must not begin with \"#\": ", source.job_name));
  return Dataset::from_service(dataset, std::move(source), open_here(std::move(options.token)));
}

}  // namespace cairn::service
