import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Load for a broker, whatever it is. Each message begins with its time (System.nanoTime, one clock for all processes of a machine) and
 * its number.
 *
 * <p>`Load produce BROKER TOPIC COUNT SIZE RATE` (0: as fast as can be); `Load consume BROKER TOPIC COUNT WARM READY` makes the file
 * READY when it listens, leaves the first WARM messages out, and prints how many came, in how many seconds, and the 50th and
 * 99th percentile of their latency in microseconds.
 */
public class Load {
    /** Without a message for so long, nothing more comes. */
    private static final long QUIET = 3_000_000_000L;

    public static void main(String[] words) throws Exception {
        var properties = new Properties();
        properties.put("bootstrap.servers", words[1]);
        for (var part : List.of("key", "value")) {
            properties.put(part + ".serializer", "org.apache.kafka.common.serialization.ByteArraySerializer");
            properties.put(part + ".deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer");
        }
        var count = Integer.parseInt(words[3]);
        if (words[0].equals("produce")) {
            produce(properties, words[2], count, Integer.parseInt(words[4]), Long.parseLong(words[5]));
        } else {
            consume(properties, words[2], count, Integer.parseInt(words[4]), Path.of(words[5]));
        }
    }

    private static void produce(Properties properties, String topic, int count, int size, long rate) {
        // A lone message is not to wait for others.
        properties.put("linger.ms", rate > 0 && rate <= 1000 ? "0" : "5");
        try (var producer = new KafkaProducer<byte[], byte[]>(properties)) {
            producer.partitionsFor(topic);
            var start = System.nanoTime();
            for (int number = 0; number < count; number++) {
                if (rate > 0) {
                    var due = start + number * 1_000_000_000L / rate;
                    for (long left; (left = due - System.nanoTime()) > 0;) {
                        LockSupport.parkNanos(left);
                    }
                }
                var value = new byte[size];
                ByteBuffer.wrap(value).putLong(System.nanoTime()).putLong(number);
                producer.send(new ProducerRecord<>(topic, 0, null, value));
            }
        }
    }

    private static void consume(Properties properties, String topic, int count, int warm, Path ready) throws Exception {
        try (var consumer = new KafkaConsumer<byte[], byte[]>(properties)) {
            var partition = new TopicPartition(topic, 0);
            consumer.assign(List.of(partition));
            consumer.seekToEnd(List.of(partition));
            consumer.position(partition);
            Files.createFile(ready);
            var latencies = new long[count];
            int received = 0;
            long first = 0, last = System.nanoTime();
            var begun = false;
            // The producer may take long to start.
            while (System.nanoTime() - last < (begun ? QUIET : 20 * QUIET)) {
                for (var record : consumer.poll(Duration.ofMillis(100))) {
                    begun = true;
                    last = System.nanoTime();
                    var value = ByteBuffer.wrap(record.value());
                    var latency = last - value.getLong();
                    var number = value.getLong();
                    if (number < warm) {
                        continue;
                    }
                    first = received == 0 ? last : first;
                    latencies[received++] = latency;
                    if (number == count - 1) {
                        report(latencies, received, last - first);
                        return;
                    }
                }
            }
            report(latencies, received, last - first);
        }
    }

    private static void report(long[] latencies, int received, long nanoseconds) {
        var sorted = Arrays.copyOf(latencies, received);
        Arrays.sort(sorted);
        var median = received == 0 ? 0 : sorted[received / 2] / 1e3;
        var late = received == 0 ? 0 : sorted[(int) (received * 0.99)] / 1e3;
        System.out.println(received + " " + nanoseconds / 1e9 + " " + median + " " + late);
    }
}
