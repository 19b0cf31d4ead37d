// TCP in ns-3 over the networks of examples/networks/tcp-*.toml. Prints one JSON object: goodput of all flows together in bits per second,
// segments sent again, packets dropped at queues.
//
//   tcp (single | dumbbell | chain | incast) CONTROL SEED
//
// CONTROL is a type of ns-3's, e.g. ns3::TcpCubic. Flows begin within their first round trip, at times drawn from the seed.
//
// PPP's header is 12 bytes shorter than Ethernet's: rates are smaller by that share of a full frame.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

using namespace ns3;

namespace {

constexpr double kSeconds = 10;
constexpr double kMegabit = 1e6 * 1502 / 1514;
constexpr uint64_t kIncastBytes = 256000;
constexpr uint32_t kLeaves = 16;

uint64_t g_again = 0;
uint64_t g_drops = 0;
uint64_t g_received = 0;
double g_last = 0;
std::map<const TcpSocketBase*, SequenceNumber32> g_highest;

void Dropped(Ptr<const Packet>) { ++g_drops; }

void Received(Ptr<const Packet> packet, const Address&) {
    g_received += packet->GetSize();
    g_last = Simulator::Now().GetSeconds();
}

void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase> socket) {
    if (packet->GetSize() == 0) {
        return;
    }
    const SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
    auto [place, first] = g_highest.try_emplace(PeekPointer(socket), end);
    if (first) {
        return;
    }
    g_again += header.GetSequenceNumber() < place->second;
    place->second = std::max(place->second, end);
}

void Watch(Ptr<BulkSendApplication> sender) {
    sender->GetSocket()->TraceConnectWithoutContext("Tx", MakeCallback(&Sent));
}

struct Link {
    double megabits;
    const char* delay;
    uint32_t packets;
};

/// The network, as it is built up.
struct Network {
    NodeContainer nodes;
    Ipv4AddressHelper addresses{"10.0.0.0", "255.255.255.0"};
    NetDeviceContainer devices;

    /// The address of the second node at their link.
    Ipv4Address Join(Ptr<Node> one, Ptr<Node> other, const Link& link) {
        PointToPointHelper helper;
        helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(static_cast<uint64_t>(link.megabits * kMegabit))));
        helper.SetChannelAttribute("Delay", StringValue(link.delay));
        helper.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(std::to_string(link.packets) + "p"));
        NetDeviceContainer ends = helper.Install(one, other);
        devices.Add(ends);
        const Ipv4Address address = addresses.Assign(ends).GetAddress(1);
        addresses.NewNetwork();
        return address;
    }
};

} // namespace

int main(int argc, char** argv) {
    if (argc != 4) {
        std::fprintf(stderr, "usage: tcp (single | dumbbell | chain | incast) CONTROL SEED\n");
        return 2;
    }
    const std::string kind = argv[1];
    RngSeedManager::SetRun(std::strtoull(argv[3], nullptr, 10));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TypeId::LookupByName(argv[2])));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));

    // Without a limit of its own a queue of the network file takes 1,000 packets.
    const Link fast{1000, "1ms", 1000};
    const uint32_t pairs = kind == "single" ? 1 : kind == "dumbbell" ? 20 : kind == "chain" ? 1 : kLeaves;
    const uint32_t routers = kind == "chain" ? 10 : kind == "incast" ? 1 : 2;
    Network network;
    NodeContainer left(pairs), right(kind == "incast" ? 1 : pairs), middle(routers);
    InternetStackHelper internet;
    internet.InstallAll();
    std::vector<Ipv4Address> sinks;
    double round_trip = 0.024;
    if (kind == "incast") {
        const Link access{100, "500us", 100};
        for (uint32_t leaf = 0; leaf < pairs; ++leaf) {
            network.Join(left.Get(leaf), middle.Get(0), access);
        }
        sinks.assign(pairs, network.Join(middle.Get(0), right.Get(0), access));
        round_trip = 0.002;
    } else {
        const Link core = kind == "chain" ? Link{20, "2ms", 100} : Link{kind == "single" ? 20.0 : 50.0, "10ms", 100};
        const Link access = kind == "chain" ? Link{100, "1ms", 1000} : fast;
        for (uint32_t router = 1; router < routers; ++router) {
            network.Join(middle.Get(router - 1), middle.Get(router), core);
        }
        for (uint32_t pair = 0; pair < pairs; ++pair) {
            network.Join(left.Get(pair), middle.Get(0), access);
            sinks.push_back(network.Join(middle.Get(routers - 1), right.Get(pair), access));
        }
    }
    // Queues at the devices only: ns-3 would else put FqCoDel in front of them.
    TrafficControlHelper().Uninstall(network.devices);
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Ptr<UniformRandomVariable> draws = CreateObject<UniformRandomVariable>();
    for (uint32_t flow = 0; flow < pairs; ++flow) {
        const uint16_t port = 5001 + flow;
        PacketSinkHelper sink("ns3::TcpSocketFactory", InetSocketAddress(Ipv4Address::GetAny(), port));
        ApplicationContainer servers = sink.Install(right.Get(flow % right.GetN()));
        servers.Get(0)->TraceConnectWithoutContext("Rx", MakeCallback(&Received));
        servers.Start(Seconds(0));
        BulkSendHelper bulk("ns3::TcpSocketFactory", InetSocketAddress(sinks[flow], port));
        bulk.SetAttribute("MaxBytes", UintegerValue(kind == "incast" ? kIncastBytes : 0));
        bulk.SetAttribute("SendSize", UintegerValue(1448));
        ApplicationContainer clients = bulk.Install(left.Get(flow));
        const double start = draws->GetValue(0, round_trip);
        clients.Start(Seconds(start));
        clients.Stop(Seconds(kSeconds));
        Simulator::Schedule(Seconds(start) + NanoSeconds(1), &Watch, DynamicCast<BulkSendApplication>(clients.Get(0)));
    }
    for (uint32_t node = 0; node < NodeList::GetNNodes(); ++node) {
        // A full queue stops the device; what comes then is dropped one layer above it.
        Ptr<TrafficControlLayer> layer = NodeList::GetNode(node)->GetObject<TrafficControlLayer>();
        if (layer) {
            layer->TraceConnectWithoutContext("TcDrop", MakeCallback(&Dropped));
        }
    }
    Simulator::Stop(Seconds(kSeconds));
    Simulator::Run();
    const double lasted = kind == "incast" ? g_last : kSeconds;
    std::printf("{\"goodput\": %.0f, \"again\": %lu, \"drops\": %lu}\n", g_received * 8 / lasted,
                static_cast<unsigned long>(g_again), static_cast<unsigned long>(g_drops));
    Simulator::Destroy();
    return 0;
}
