// The dumbbell of examples/networks/overload.toml in ns-3: six constant-rate UDP flows that overload the bottleneck.
// Prints one JSON object: datagrams received by each flow, drops and queue at the bottleneck, processor seconds.
//
//   overload RATE_BIT_PER_S SECONDS MEASURE
//
// With MEASURE = 1 the bottleneck's queue is followed at every change; 0 leaves that cost out, to be timed.
//
// Frames have the length they have on Ethernet: PPP's header is 12 bytes shorter, so the payload is 12 bytes longer.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <cstdlib>
#include <sys/resource.h>

using namespace ns3;

namespace {

constexpr int kPairs = 6;
constexpr int kPayload = 958 + 12;
constexpr int kFrame = 1000;

double g_integral = 0; // packets waiting, integrated over seconds
double g_last = 0;
uint32_t g_waiting = 0;
uint32_t g_most = 0;
uint64_t g_drops = 0;

void QueueChanged(uint32_t, uint32_t now_waiting) {
    double now = Simulator::Now().GetSeconds();
    g_integral += g_waiting * (now - g_last);
    g_last = now;
    g_waiting = now_waiting;
    g_most = std::max(g_most, now_waiting);
}

void Dropped(Ptr<const Packet>) { ++g_drops; }

double ProcessorSeconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: overload RATE_BIT_PER_S SECONDS MEASURE\n");
        return 2;
    }
    const uint64_t rate = std::strtoull(argv[1], nullptr, 10);
    const double seconds = std::atof(argv[2]);
    const bool measure = std::atoi(argv[3]) != 0;

    NodeContainer left, right, routers;
    left.Create(kPairs);
    right.Create(kPairs);
    routers.Create(2);

    InternetStackHelper internet;
    internet.InstallAll();

    PointToPointHelper access;
    access.SetDeviceAttribute("DataRate", DataRateValue(DataRate(10 * rate)));
    access.SetChannelAttribute("Delay", StringValue("1ms"));
    access.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100p"));
    PointToPointHelper bottleneck;
    bottleneck.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
    bottleneck.SetChannelAttribute("Delay", StringValue("10ms"));
    bottleneck.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("100p"));

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.0");
    NetDeviceContainer all = bottleneck.Install(routers);
    Ptr<NetDevice> entrance = all.Get(0);
    addresses.Assign(all);
    std::vector<Ipv4Address> sinks;
    for (int pair = 0; pair < kPairs; ++pair) {
        NetDeviceContainer west = access.Install(left.Get(pair), routers.Get(0));
        addresses.NewNetwork();
        addresses.Assign(west);
        NetDeviceContainer east = access.Install(routers.Get(1), right.Get(pair));
        addresses.NewNetwork();
        sinks.push_back(addresses.Assign(east).GetAddress(1));
        all.Add(west);
        all.Add(east);
    }
    // Queues at the devices only: ns-3 would else put FqCoDel in front of them.
    TrafficControlHelper traffic_control;
    traffic_control.Uninstall(all);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    ApplicationContainer servers;
    for (int pair = 0; pair < kPairs; ++pair) {
        UdpServerHelper server(5001 + pair);
        servers.Add(server.Install(right.Get(pair)));
        UdpClientHelper client(sinks[pair], 5001 + pair);
        client.SetAttribute("PacketSize", UintegerValue(kPayload));
        client.SetAttribute("MaxPackets", UintegerValue(4294967295U));
        // A quarter of the bottleneck for each flow: 1.5 times its rate together.
        client.SetAttribute("Interval", TimeValue(NanoSeconds(static_cast<int64_t>(kFrame * 8 * 4e9 / rate))));
        ApplicationContainer clients = client.Install(left.Get(pair));
        clients.Start(NanoSeconds(static_cast<int64_t>(pair * kFrame * 8 * 0.61e9 / rate)));
        clients.Stop(Seconds(seconds));
    }
    servers.Start(Seconds(0));

    Ptr<PointToPointNetDevice> device = DynamicCast<PointToPointNetDevice>(entrance);
    // A full queue stops the device; what comes then is dropped one layer above it.
    routers.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext("TcDrop", MakeCallback(&Dropped));
    if (measure) {
        device->GetQueue()->TraceConnectWithoutContext("PacketsInQueue", MakeCallback(&QueueChanged));
    }

    Simulator::Stop(Seconds(seconds));
    const double before = ProcessorSeconds();
    Simulator::Run();
    const double used = ProcessorSeconds() - before;
    QueueChanged(0, g_waiting);

    std::printf("{\"received\": [");
    for (int pair = 0; pair < kPairs; ++pair) {
        std::printf("%s%lu", pair == 0 ? "" : ", ",
                    static_cast<unsigned long>(DynamicCast<UdpServer>(servers.Get(pair))->GetReceived()));
    }
    std::printf("], \"drops\": %lu, \"queue_mean\": %.6f, \"queue_max\": %u, \"processor_seconds\": %.6f}\n",
                static_cast<unsigned long>(g_drops), g_integral / seconds, g_most, used);
    Simulator::Destroy();
    return 0;
}
